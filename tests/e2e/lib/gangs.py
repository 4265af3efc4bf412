"""Gangs that the extender places as a whole: kube-scheduler asks about one member after the other."""

import statistics
import time

from lib import objects
from lib.books import BINDS, bound_pods, check, check_books, dgx_nodes, wait_used
from lib.stage import PODS, Stage

GANGS = 10
FITTING = 6
MEMBERS = 8
GPUS = 8
MEDIAN_S = 2
WORST_S = 10


def member(gang, number):
    annotations = {"mortise.dev/gang-name": gang, "mortise.dev/gang-min-member": str(MEMBERS)}
    return objects.pod(f"{gang}-{number}", GPUS, annotations=annotations)


def members_bound(stage):
    """Gang -> number of its members that are bound."""
    count = {f"gang{g}": 0 for g in range(GANGS)}
    for name in bound_pods(stage):
        count[name.split("-")[0]] += 1
    return count


def wait_whole(stage, done, want, since, timeout=60):
    """Until so many gangs more than `done` are whole; how long each took since the moment given for it."""
    took = {}
    end = time.monotonic() + timeout
    while len(took) < want:
        check(time.monotonic() < end, f"{len(took)} of {want} gangs are whole after {timeout} s: {members_bound(stage)}")
        for gang, bound in members_bound(stage).items():
            if bound == MEMBERS and gang not in done and gang not in took:
                took[gang] = time.monotonic() - since(gang)
        time.sleep(0.03)
    return took


def check_parts(stage):
    """No gang is there in part, and what waits holds nothing."""
    count = members_bound(stage)
    check(set(count.values()) <= {0, MEMBERS}, f"gangs are bound in part: {count}")
    check(stage.metric("mortise_reservations") == 0, "a gang that waits holds places")


def delete_gang(stage, gang):
    for i in range(MEMBERS):
        stage.api.delete(f"{PODS}/{gang}-{i}")
    return time.monotonic()


def gang_nodes(env):
    """Machines for six of the ten gangs."""
    return dgx_nodes(env, "gang", FITTING * MEMBERS)


def submit_and_end(stage):
    """Submits the gangs member by member in turn, and deletes running ones until all have run: six start whole at once, four hold
    nothing and start whole when others end. Returns the seconds from a gang's last member, or from the room for it, until it was
    whole."""
    created = {}
    for i in range(MEMBERS):
        for g in range(GANGS):
            stage.create(member(f"gang{g}", i))
            created[f"gang{g}"] = time.monotonic()
    took = wait_whole(stage, {}, FITTING, created.get)
    time.sleep(3)
    check_parts(stage)
    check(check_books(stage) == FITTING * MEMBERS * GPUS, "not all GPUs are in use")
    running = list(took)
    for gang in running[:GANGS - FITTING]:
        freed = delete_gang(stage, gang)
        took.update(wait_whole(stage, took, 1, lambda _, freed=freed: freed))
        check_parts(stage)
    wait_used(stage, FITTING * MEMBERS * GPUS)
    return sorted(took.values())


def gangs(env):
    """Ten gangs where six fit start whole, soon, and hold nothing before."""
    with Stage(env, gang_nodes(env), live=True, extender_entry=BINDS) as stage:
        times = submit_and_end(stage)
        text = f"seconds until whole: {', '.join(f'{t:.1f}' for t in times)}"
        check(statistics.median(times) <= MEDIAN_S and times[-1] <= WORST_S, text)
        return text

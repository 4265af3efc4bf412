#!/usr/bin/env python3
"""Checks the shape of the C++ tree: include direction, header weight, CMake source lists, file and function length.

Prints one line per violation (FILE:LINE: what is wrong) and exits 1 if there is any. The layer numbers here are the
same as in each folder's mortise_library(... LAYER n ...); CMake checks what is linked, this script what is included.
"""
import argparse
import os
import re
import subprocess
import sys

# Folder -> layer. A file may include files of its own folder and of lower layers, nothing else.
LAYERS = {
    "scheduler/base": 0,
    "scheduler/topology": 1,
    "traces": 1,
    "scheduler/placement": 2,
    "scheduler/kube/objects": 3,
    "scheduler/kube/client": 4,
    "scheduler/extender": 5,
    "sim": 5,
    "bench": 6,
    "tests": 6,
}

# The core takes plain structs and returns plain structs: no input or output, no threads, no clock of the machine.
PLACEMENT_FORBIDDEN = re.compile(
    r"(thread|mutex|shared_mutex|condition_variable|future|stop_token|fstream|iostream|chrono|ctime|time\.h|filesystem"
    r"|unistd\.h|sys/.*|(nlohmann|simdjson|fmt|spdlog|httplib|yaml-cpp|CLI|prometheus)(/.*|\.h))$")

# Costly to compile: a header that pulls one in makes every user of that header pay.
HEAVY = re.compile(r"(boost/graph/.*|httplib\.h|nlohmann/(?!json_fwd\.hpp).*|simdjson\.h|yaml-cpp/.*|CLI/.*|prometheus/.*)$")

MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 60

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')
SOURCE_COMMANDS = {"mortise_library", "mortise_test", "mortise_fuzz", "add_executable", "add_library", "target_sources"}


def list_files(root):
    """Tracked files, or every file of a tree that is no checkout."""
    if os.path.exists(os.path.join(root, ".git")):
        done = subprocess.run(["git", "-C", root, "ls-files", "-z"], capture_output=True, check=False)
        if done.returncode == 0:
            names = done.stdout.decode().split("\0")
            return sorted(name for name in names if name and os.path.isfile(os.path.join(root, name)))
    found = []
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name not in ("build", "out") and not name.startswith(".")]
        found += [os.path.relpath(os.path.join(folder, name), root) for name in files]
    return sorted(found)


def folder_of(path):
    """The row of LAYERS a file belongs to, or None."""
    best = None
    for folder in LAYERS:
        if path.startswith(folder + "/") and (best is None or len(folder) > len(best)):
            best = folder
    return best


def check_includes(path, text, known):
    folder = folder_of(path)
    if folder is None:
        yield f"{path}:1: its folder has no layer; add the folder to LAYERS in tools/check_layers.py"
        return
    for number, line in enumerate(text.split("\n"), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        own, system = match.groups()
        name = own or system
        where = f"{path}:{number}"
        if path.endswith(".h") and HEAVY.match(name):
            yield f"{where}: {name} is a heavy header; include it in a .cpp file only"
        if folder == "scheduler/placement" and PLACEMENT_FORBIDDEN.match(name):
            yield f"{where}: {name} is not allowed in placement (no JSON, HTTP, files, threads, clocks or logging there)"
        if own is None:
            continue
        target = folder_of(own)
        if own not in known:
            yield f'{where}: "{own}" is not a file of this tree; include paths start at the root of the repository'
        elif target is None:
            yield f"{where}: {own} is in no layer"
        elif target != folder and LAYERS[target] >= LAYERS[folder]:
            yield (f"{where}: {folder} (layer {LAYERS[folder]}) may not include {own} (layer {LAYERS[target]});"
                   " only lower layers")


def cmake_commands(text):
    """Yields (line, command, arguments) of a CMake file, comments removed."""
    text = re.sub(r"#[^\n]*", "", text)
    for match in re.finditer(r"(\w+)\s*\(", text):
        depth, end = 1, match.end()
        while end < len(text) and depth:
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        yield text.count("\n", 0, match.start()) + 1, match.group(1), text[match.end():end - 1].split()


def generated_headers(root, files):
    """Include paths of the headers that the build writes: the BYPRODUCTS below a folder `generated`."""
    found = set()
    for path in files:
        if os.path.basename(path) == "CMakeLists.txt":
            with open(os.path.join(root, path), encoding="utf-8") as file:
                for _, _, arguments in cmake_commands(file.read()):
                    found.update(re.findall(r"generated}?/([\w/.]+\.h)", " ".join(arguments))
                                 if "BYPRODUCTS" in arguments else ())
    return found


def check_cmake(root, files):
    """Every listed source is there, and every C++ source is listed."""
    listed = set()
    for path in files:
        if os.path.basename(path) != "CMakeLists.txt" and not path.endswith(".cmake"):
            continue
        with open(os.path.join(root, path), encoding="utf-8") as file:
            text = file.read()
        for number, command, arguments in cmake_commands(text):
            if path.endswith(".txt") and command == "file" and any(word.startswith("GLOB") for word in arguments):
                yield f"{path}:{number}: sources are listed by name; no GLOB"
            if command not in SOURCE_COMMANDS:
                continue
            folder = folder_of(path)
            if "LAYER" in arguments and folder and arguments[arguments.index("LAYER") + 1:][:1] != [str(LAYERS[folder])]:
                yield f"{path}:{number}: {folder} is layer {LAYERS[folder]} in tools/check_layers.py, not so here"
            for word in arguments:
                if not word.endswith((".cpp", ".h")):
                    continue
                name = word.strip('"').replace("${CMAKE_CURRENT_SOURCE_DIR}/", "")
                from_root = name.startswith("${CMAKE_SOURCE_DIR}/")
                name = name.replace("${CMAKE_SOURCE_DIR}/", "")
                if "$" in name:
                    yield f"{path}:{number}: {word}: sources are listed by name; no variables"
                    continue
                source = os.path.normpath(name if from_root else os.path.join(os.path.dirname(path), name))
                if source not in files:
                    yield f"{path}:{number}: {source} is listed but is not a file of this tree"
                listed.add(source)
    for path in files:
        if path.endswith(".cpp") and path not in listed:
            yield f"{path}:1: not listed in any CMakeLists.txt, so it is never built"


STRIP = re.compile(
    r'(?P<raw>R"(?P<delim>[^()\\ ]{0,16})\(.*?\)(?P=delim)")'
    r"|(?P<comment>//[^\n]*|/\*.*?\*/)"
    r'|(?P<text>"(?:\\.|[^"\\\n])*")'
    r"|(?P<char>(?<![0-9a-fA-F])'(?:\\.[^']*|[^'\\\n])')"
    r"|(?P<directive>^[ \t]*#(?:\\\n|[^\n])*)",
    re.S | re.M)


def strip_code(text):
    """Blanks out comments, literals and preprocessor lines; every line keeps its number."""
    def blank(match):
        lines = "\n" * match.group().count("\n")
        return lines if match.lastgroup in ("comment", "directive") else '""' + lines
    return STRIP.sub(blank, text)


LAMBDA = re.compile(r"(?<![\w\]])\[[^\]]*\]\s*(\(.*\)[^()]*)?$", re.S)


def brace_kind(head, scope):
    """What a `{` opens, from the code between the last `;`, `{` or `}` and it, and from what surrounds it."""
    if LAMBDA.search(head):
        return "function"
    if scope in ("function", "values"):
        return scope
    plain = re.sub(r"^(?:template\s*<.*?>\s*(?=[\w\[]))*", "", head, flags=re.S)
    if re.match(r"(inline\s+)?namespace\b|extern\s*\"", plain):
        return "scope"
    if re.match(r"(typedef\s+)?(class|struct|union|enum)\b", plain):
        if "(" not in re.sub(r"alignas\s*\([^)]*\)", "", plain):
            return "scope"
    before_call = plain.split("(")[0]
    if "operator" not in before_call and "=" in before_call:
        return "values"
    if plain and "(" not in plain and not plain.startswith(","):
        return "values"
    return "function"


def functions(text):
    """Yields (first line, last line, head) of every outermost function body."""
    stack = ["scope"]
    starts = []
    head_start, line, head = None, 1, []
    for char in strip_code(text):
        if char == "\n":
            line += 1
        if char == "{":
            kind = brace_kind("".join(head).strip(), stack[-1])
            starts.append((head_start or line, " ".join("".join(head).split())))
            stack.append(kind)
        elif char == "}" and len(stack) > 1:
            kind = stack.pop()
            first, name = starts.pop()
            if kind == "function" and stack[-1] != "function":
                yield first, line, name
        if char in "{};" or (char == ":" and "".join(head).strip() in ("public", "protected", "private")):
            head, head_start = [], None
            continue
        if head_start is None and not char.isspace():
            head_start = line
        head.append(char)


def check_lengths(path, text):
    lines = text.count("\n")
    if lines > MAX_FILE_LINES:
        yield f"{path}:{MAX_FILE_LINES + 1}: {lines} lines; at most {MAX_FILE_LINES} in a file"
    for first, last, head in functions(text):
        length = last - first + 1
        if length > MAX_FUNCTION_LINES:
            name = re.sub(r"\(.*", "", head, flags=re.S).split(" ")[-1] if "(" in head else head
            yield f"{path}:{first}: {name} has {length} lines; at most {MAX_FUNCTION_LINES} in a function"


def check(root):
    files = list_files(root)
    known = set(files) | generated_headers(root, files)
    sources = [path for path in files if path.endswith((".cpp", ".h"))]
    violations = list(check_cmake(root, files))
    for path in sources:
        with open(os.path.join(root, path), encoding="utf-8") as file:
            text = file.read()
        violations += check_includes(path, text, known)
        violations += check_lengths(path, text)
    return len(sources), violations


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--root", default=os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
                        help="the tree to check (default: the one this script is in)")
    count, violations = check(os.path.abspath(parser.parse_args().root))
    for line in violations:
        print(line)
    print(f"{count} C++ files, {len(violations)} violations")
    if count == 0:
        print("no C++ file found: nothing was checked")
    return 1 if violations or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())

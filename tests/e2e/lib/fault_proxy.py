"""A proxy between the extender and the API server that can lose, refuse or hold what passes.

It shows the API server's own certificate, so the extender trusts it, and passes bearer tokens on."""

import http.client
import http.server
import json
import os
import socket
import ssl
import sys
import threading
import time

from lib import http_reply
from lib.shipped import EXTENDER

ALL_PODS = "/api/v1/pods"
REASONS = {409: "Conflict", 410: "Expired", 504: "Timeout"}


class Fault:
    """What happens to one Binding. `answer`: this status instead of the API server's; `drop`: the connection is closed
    instead; neither: the true answer. `forward` says whether the API server gets the Binding at all, `hold_before` and
    `hold_after` are events that are waited for before and after it does."""

    def __init__(self, answer=None, drop=False, forward=False, hold_before=None, hold_after=None):
        self.answer = answer
        self.drop = drop
        self.forward = forward or (answer is None and not drop)
        self.hold_before = hold_before
        self.hold_after = hold_after


class Gate:
    """Open at first. While it is closed, whoever comes waits."""

    def __init__(self):
        self._open = threading.Event()
        self._open.set()
        self._lock = threading.Lock()
        self.waiting = 0

    def close(self):
        self._open.clear()

    def open(self):
        self._open.set()

    def go_through(self):
        with self._lock:
            self.waiting += 1
        self._open.wait()
        with self._lock:
            self.waiting -= 1


class SeenBinding:
    """A Binding that came by: `status` is the API server's answer, None when it never got there (yet)."""

    def __init__(self, pod, body, authorization):
        self.pod = pod
        self.token = authorization.removeprefix("Bearer ")
        self.uid = body["metadata"].get("uid")
        self.node = body["target"]["name"]
        self.came = time.monotonic()
        self.status = None


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, proxy, tls):
        super().__init__(("127.0.0.1", 0), _handler(proxy))
        self._proxy = proxy
        self._tls = tls

    def process_request_thread(self, request, client_address):
        # The handshake belongs to the connection's own thread, and may be held there.
        try:
            self._proxy.handshakes.go_through()
            request = self._tls.wrap_socket(request, server_side=True)
        except OSError:
            request.close()
            return
        super().process_request_thread(request, client_address)

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], (OSError, http.client.HTTPException)):
            super().handle_error(request, client_address)


class FaultProxy:
    """Use as a context manager. Three gates: new connections go through `handshakes` before their TLS handshake, watches of
    pods through `pod_watches` before they are passed on, and answers to lists of pods through `pod_lists`."""

    def __init__(self, env):
        pki = env.plane.pki
        self.api_port = env.plane.api_port
        self._upstream_tls = ssl.create_default_context(cafile=pki.ca)
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(pki.path("apiserver.crt"), pki.path("apiserver.key"))
        self.handshakes, self.pod_watches, self.pod_lists = Gate(), Gate(), Gate()
        self._lock = threading.Lock()
        self._expiring = 0     # how many watches of pods are to end with 410
        self._faults = []      # of the next Bindings
        self._of_pod = {}      # pod -> the fault of all its Bindings
        self._bindings = []
        self._statuses = []    # (path without query, status) of what was not a Binding
        self._cut = False
        self._open = set()     # sockets of requests in progress, both sides
        self._server = _Server(self, tls)
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        for gate in (self.handshakes, self.pod_watches, self.pod_lists):
            gate.open()
        self._server.shutdown()
        self._server.server_close()
        self.cut()
        self._thread.join(5)

    def kubeconfig(self, env, token_file=None):
        """Of a client that goes through this proxy, by default with the extender's own token."""
        token_file = token_file or os.path.join(env.plane.dir, EXTENDER + ".token")
        return env.plane.write_kubeconfig("extender-by-proxy", {"tokenFile": token_file}, self.port)

    def next_bindings(self, *faults):
        """One for each Binding to come; those after them pass."""
        with self._lock:
            self._faults.extend(faults)

    def bindings_of(self, pod, fault):
        """All Bindings of the pod from now on; None: they pass."""
        with self._lock:
            self._of_pod[pod] = fault

    def bindings(self, pod=None):
        """Those that came by, oldest first."""
        with self._lock:
            return [b for b in self._bindings if pod in (None, b.pod)]

    def statuses(self, path):
        """Of the answers for this path, in order; an error within a watch counts as one."""
        with self._lock:
            return [status for seen, status in self._statuses if seen == path]

    def cut(self):
        """Ends all connections and refuses new requests until mend()."""
        with self._lock:
            self._cut = True
            connections = list(self._open)
        for connection in connections:
            try:
                socket.socket.shutdown(connection, socket.SHUT_RDWR)  # not TLS's, which its own thread may be in
            except OSError:
                pass

    def mend(self):
        with self._lock:
            self._cut = False

    def asks_with(self, token):
        """The API server's status for this token."""
        connection = self.upstream()
        try:
            connection.request("GET", "/api/v1/nodes?limit=1", headers={"Authorization": "Bearer " + token})
            return connection.getresponse().status
        finally:
            connection.close()

    def expire_watch(self):
        """The next watch of pods ends with 410 at once."""
        with self._lock:
            self._expiring += 1

    # What follows is called by the connections' threads.

    def take_expiry(self):
        with self._lock:
            expired = self._expiring > 0
            self._expiring -= expired
        return expired

    def is_cut(self):
        with self._lock:
            return self._cut

    def opened(self, connection):
        with self._lock:
            if self._cut:
                raise ConnectionResetError("cut")
            self._open.add(connection)

    def closed(self, connection):
        with self._lock:
            self._open.discard(connection)

    def note(self, path, status):
        with self._lock:
            self._statuses.append((path, status))

    def take_binding(self, path, body, authorization):
        binding = SeenBinding(path.split("/")[-2], json.loads(body), authorization)
        with self._lock:
            self._bindings.append(binding)
            fault = self._of_pod.get(binding.pod)
            if fault is None and self._faults:
                fault = self._faults.pop(0)
        return binding, fault or Fault()

    def upstream(self):
        return http.client.HTTPSConnection("127.0.0.1", self.api_port, timeout=600, context=self._upstream_tls)


def status_body(code):
    return json.dumps({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
                       "reason": REASONS.get(code, "Odd"), "message": "said by the test"}).encode()


def _handler(proxy):
    class Handler(http_reply.Handler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def setup(self):
            super().setup()
            self._up = None
            proxy.opened(self.connection)

        def finish(self):
            proxy.closed(self.connection)
            self._hang_up()
            super().finish()

        def _any(self):
            if proxy.is_cut():
                self.close_connection = True
                return
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            path = self.path.split("?")[0]
            if self.command == "POST" and path.endswith("/binding"):
                self._binding(path, body)
            elif self.command == "GET" and path == ALL_PODS:
                self._pods(path)
            else:
                self._pass_on(path, self._send(body))

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _any

        def _pods(self, path):
            if "watch=true" not in self.path:
                response = self._send(b"")
                proxy.pod_lists.go_through()
                self._pass_on(path, response)
            elif proxy.take_expiry():
                proxy.note(path, 410)
                self.reply(410, status_body(410))
            else:
                proxy.pod_watches.go_through()
                self._pass_on(path, self._send(b""))

        def _binding(self, path, body):
            binding, fault = proxy.take_binding(path, body, self.headers.get("Authorization", ""))
            if fault.hold_before:
                fault.hold_before.wait()
            response = None
            if fault.forward:
                response = self._send(body)
                binding.status, answer = response.status, response.read()
            if fault.hold_after:
                fault.hold_after.wait()
            if fault.drop:
                self.close_connection = True
            elif fault.answer:
                self.reply(fault.answer, status_body(fault.answer))
            else:
                self.reply(binding.status, answer)

        def _send(self, body):
            headers = {k: v for k, v in self.headers.items() if k.lower() not in ("host", "content-length", "connection")}
            for fresh in (False, True):
                if self._up is None:
                    self._up = proxy.upstream()
                    self._up.connect()
                    proxy.opened(self._up.sock)
                    fresh = True
                try:
                    self._up.request(self.command, self.path, body or None, headers)
                    return self._up.getresponse()
                except (OSError, http.client.HTTPException):
                    self._hang_up()
                    if fresh or self.command != "GET":
                        raise
            raise AssertionError("the second connection is always fresh")

        def _hang_up(self):
            if self._up is not None:
                proxy.closed(self._up.sock)
                self._up.close()
                self._up = None

        def _pass_on(self, path, response):
            proxy.note(path, response.status)
            if response.getheader("Content-Length") is not None:
                self.reply(response.status, response.read())
                return
            # A watch, or a long list: piece by piece as it comes.
            self.send_response(response.status)
            self.send_header("Content-Type", response.getheader("Content-Type", "application/json"))
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            while piece := response.read1(1 << 16):
                if b'"type":"ERROR"' in piece and b'"code":410' in piece:
                    proxy.note(path, 410)
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.write(b"0\r\n\r\n")

    return Handler

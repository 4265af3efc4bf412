"""A recording reverse proxy between kube-scheduler and the extender: it passes bodies through unchanged and keeps both.
It speaks TLS on both sides, each with the certificates of the one it stands in for."""

import http.client
import http.server
import json
import ssl
import sys
import threading
import time

from lib import http_reply


class Exchange:
    """One call of kube-scheduler and what the extender answered."""

    def __init__(self, verb, request, status, answer, seconds):
        self.verb = verb
        self.request_bytes = request
        self.status = status
        self.answer_bytes = answer
        self.seconds = seconds
        self._request = None

    @property
    def request(self):
        if self._request is None:
            self._request = json.loads(self.request_bytes)
        return self._request

    @property
    def answer(self):
        return json.loads(self.answer_bytes)

    @property
    def pod_uid(self):
        if self.verb == "bind":
            return self.request.get("PodUID")
        return ((self.request.get("Pod") or {}).get("metadata") or {}).get("uid")

    def as_json(self):
        return {"verb": self.verb, "status": self.status, "seconds": round(self.seconds, 6),
                "request": self.request_bytes.decode(errors="replace"),
                "answer": self.answer_bytes.decode(errors="replace")}


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        # kube-scheduler hangs up when its time limit for a call is over; the exchange is on record all the same.
        if not isinstance(sys.exc_info()[1], (ConnectionError, ssl.SSLError)):
            super().handle_error(request, client_address)


class Recorder:
    """Without certificates both sides speak plain HTTP."""

    def __init__(self, upstream_port, log_path, certificates):
        self.log = log_path
        self._client = certificates.client() if certificates else None
        self.upstream_port = upstream_port  # may be changed while it runs
        self._file = open(log_path, "a", encoding="utf-8")
        self._lock = threading.Lock()
        self._exchanges = []
        self._server = _Server(("127.0.0.1", 0), self._handler())
        if certificates:
            # The handshake is left to the thread that serves the connection.
            self._server.socket = certificates.server().wrap_socket(self._server.socket, server_side=True,
                                                                    do_handshake_on_connect=False)
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def exchanges(self, verb=None, uid=None):
        """What was seen so far, oldest first."""
        with self._lock:
            seen = list(self._exchanges)
        return [e for e in seen if (verb is None or e.verb == verb) and (uid is None or e.pod_uid == uid)]

    def close(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)
        with self._lock:
            self._file.close()

    def _keep(self, exchange):
        with self._lock:
            self._exchanges.append(exchange)
            if not self._file.closed:
                self._file.write(json.dumps(exchange.as_json()) + "\n")
                self._file.flush()

    def _forward(self, path, body, content_type):
        if self._client:
            connection = http.client.HTTPSConnection("127.0.0.1", self.upstream_port, timeout=60, context=self._client)
        else:
            connection = http.client.HTTPConnection("127.0.0.1", self.upstream_port, timeout=60)
        try:
            connection.request("POST", path, body, {"Content-Type": content_type})
            response = connection.getresponse()
            return response.status, response.getheader("Content-Type", ""), response.read()
        finally:
            connection.close()

    def _handler(recorder):  # noqa: N805 - the inner class needs its own self
        class Handler(http_reply.Handler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self):
                body = self.body()
                started = time.monotonic()
                try:
                    status, kind, answer = recorder._forward(self.path, body, self.headers.get("Content-Type", ""))
                except (OSError, http.client.HTTPException) as error:
                    # What kube-scheduler would see from a broken extender: not 200. The record says why.
                    status, kind, answer = 502, "text/plain", f"proxy: {error}".encode()
                # Kept before the answer leaves: whoever sees its effect in the API server finds it here.
                recorder._keep(Exchange(self.path.strip("/"), body, status, answer, time.monotonic() - started))
                self.reply(status, answer, kind)

        return Handler

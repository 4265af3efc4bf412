"""A small client of the Kubernetes API: JSON over one kept-alive TLS connection."""

import http.client
import json
import ssl

from lib.procs import E2EError


class ApiError(E2EError):
    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


class Api:
    def __init__(self, port, ca, cert, key):
        self.port = port
        self._tls = ssl.create_default_context(cafile=ca)
        self._tls.load_cert_chain(cert, key)
        self._connection = None

    def get(self, path):
        return self.call("GET", path)

    def history(self, path, version):
        """Every change of a collection since that resource version, oldest first, as watch events."""
        status, answer = self._send("GET", f"{path}?watch=true&resourceVersion={version}&timeoutSeconds=2", None, "")
        if status != 200:
            raise ApiError(status, f"watch {path}: {status} {answer[:500].decode(errors='replace')}")
        events = [json.loads(line) for line in answer.splitlines() if line.strip()]
        for event in events:
            if event["type"] == "ERROR":
                raise E2EError(f"watch {path}: {event['object'].get('message')}")
        return events

    def post(self, path, body):
        return self.call("POST", path, body)

    def patch(self, path, body):
        return self.call("PATCH", path, body, "application/merge-patch+json")

    def delete(self, path):
        # No kubelet ends the pods of a test, so deletion never waits for one.
        return self.call("DELETE", path, {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0})

    def ready(self):
        try:
            return self._send("GET", "/readyz", None, "application/json")[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    def call(self, method, path, body=None, content_type="application/json"):
        data = None if body is None else json.dumps(body).encode()
        try:
            status, answer = self._send(method, path, data, content_type)
        except (OSError, http.client.HTTPException) as error:
            raise E2EError(f"{method} {path}: {error}") from error
        if not 200 <= status < 300:
            raise ApiError(status, f"{method} {path}: {status} {answer[:500].decode(errors='replace')}")
        return json.loads(answer)

    def _send(self, method, path, data, content_type):
        headers = {"Accept": "application/json", "Content-Type": content_type}
        if self._connection is None:
            self._connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=30, context=self._tls)
        try:
            self._connection.request(method, path, data, headers)
            response = self._connection.getresponse()
            return response.status, response.read()
        except BaseException:
            # The connection may hold half an answer; the next call starts a new one.
            self._connection.close()
            self._connection = None
            raise

"""Types of custom resources that the API server serves while a scenario needs them: those of other projects, of which only names and
what is written here matter."""

from lib.api import ApiError
from lib.procs import wait_for

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


class CustomType:
    """`approved` is the page on which Kubernetes agreed to the group, which groups below k8s.io must have."""

    def __init__(self, group, version, kind, scope="Namespaced", schema=None, approved=None):
        self.group = group
        self.version = version
        self.kind = kind
        self.scope = scope
        self.plural = (kind[:-1] + "ies" if kind.endswith("y") else kind + "s").lower()
        self._schema = schema or ANYTHING
        self._approved = approved

    @property
    def path(self):
        """Of the objects, those of the default namespace if they have one."""
        namespace = "/namespaces/default" if self.scope == "Namespaced" else ""
        return f"/apis/{self.group}/{self.version}{namespace}/{self.plural}"

    @property
    def definition(self):
        annotations = {"api-approved.kubernetes.io": self._approved} if self._approved else {}
        names = {"plural": self.plural, "singular": self.kind.lower(), "kind": self.kind, "listKind": self.kind + "List"}
        version = {"name": self.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": self._schema}}
        return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": f"{self.plural}.{self.group}", "annotations": annotations},
                "spec": {"group": self.group, "scope": self.scope, "names": names, "versions": [version]}}

    def object(self, name, spec):
        return {"apiVersion": f"{self.group}/{self.version}", "kind": self.kind, "metadata": {"name": name}, "spec": spec}


class Served:
    """The types exist while this is open, and nothing of theirs is left afterwards."""

    def __init__(self, api, *types):
        self._api = api
        self._types = types

    def __enter__(self):
        for custom in self._types:
            self._api.post(CRDS, custom.definition)
        for custom in self._types:
            wait_for(f"{custom.kind} of {custom.group} to be served", lambda c=custom: self._listed(c))

    def __exit__(self, *_):
        for custom in self._types:
            self._api.delete(f"{CRDS}/{custom.plural}.{custom.group}")
        for custom in self._types:
            wait_for(f"{custom.kind} of {custom.group} to be gone", lambda c=custom: not self._defined(c))

    def _defined(self, custom):
        return any(d["metadata"]["name"] == f"{custom.plural}.{custom.group}" for d in self._api.get(CRDS)["items"])

    def _listed(self, custom):
        """Where clients look which types there are: soon after the definition is established."""
        try:
            self._api.get(custom.path)
            served = self._api.get(f"/apis/{custom.group}/{custom.version}")["resources"]
            return self._api.get(f"/apis/{custom.group}") and any(r["name"] == custom.plural for r in served)
        except ApiError as error:
            if error.status in (404, 429, 503):  # 429: its storage is being set up
                return False
            raise

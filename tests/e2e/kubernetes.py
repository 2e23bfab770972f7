"""tests/e2e/kubernetes.py -- checks deploy/kubernetes without a cluster.

  kubernetes.py check DIR     checks that each reference in an object has a target. Prints one line per error; exit code 1
  kubernetes.py start DIR     prints the start script of a container
  kubernetes.py live DIR      prints the script of its liveness probe
  kubernetes.py ready DIR     prints the port and path of the container's readiness probe
  kubernetes.py schema FILE   validates the output of kubectl for DIR with the schemas of kubernetes_validate
  kubernetes.py env DIR       prints the environment of a container, one NAME=VALUE per line, without variables that only
                              a cluster can set
"""
import pathlib
import sys

import yaml

complaints = []


def expect(good, text):
    if not good:
        complaints.append(text)


def load(folder):
    """Returns the content of kustomization.yaml, and a dict of all objects that it names, by (kind, name)."""
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
    objects = {}
    for resource in kustomization["resources"]:
        for one in yaml.safe_load_all((folder / resource).read_text()):
            key = one["kind"], one["metadata"]["name"]
            expect(key not in objects, f"{resource}: {key} stands there twice")
            objects[key] = one
    return kustomization, objects


def check(folder):
    kustomization, objects = load(folder)
    listed = set(kustomization["resources"]) | {"kustomization.yaml"}
    there = {path.name for path in folder.glob("*.yaml")}
    expect(listed == there, f"kustomization.yaml lists {sorted(listed)}, and there are {sorted(there)}")
    expect(("Namespace", kustomization["namespace"]) in objects, "the namespace is not among the resources")
    sets = objects["StatefulSet", "peer"]["spec"]
    pod = sets["template"]["spec"]
    labels = sets["template"]["metadata"]["labels"]
    container = pod["containers"][0]
    secrets = {s["name"] for s in kustomization["secretGenerator"]}

    service = objects.get(("Service", sets["serviceName"]))
    expect(service is not None, f"there is no service {sets['serviceName']}")
    expect(service["spec"]["clusterIP"] == "None", "the service is not headless")
    expect(service["spec"]["publishNotReadyAddresses"] is True, "the service hides pods that wait for others")
    selectors = [(f"{kind} {name}", one["spec"]["selector"].get("matchLabels", one["spec"]["selector"]))
                 for (kind, name), one in objects.items() if "selector" in one.get("spec", {})]
    expect(len(selectors) == 3, f"selectors: {selectors}")
    for name, selector in selectors:
        expect(selector.items() <= labels.items(), f"{name} selects {selector}, and pods have {labels}")

    ports = {p["name"]: p["containerPort"] for p in container["ports"]}
    for port in service["spec"]["ports"]:
        expect(ports.get(port["targetPort"]) == port["port"], f"the service's {port} is none of the container's")
    env = variables(objects)
    serves = int(env["HEARSAY_METRICS"].rpartition(":")[2])
    ready = container["readinessProbe"]["httpGet"]
    expect((ports.get(ready["port"]), ready["path"]) == (serves, "/readyz"), f"the readiness probe asks {ready}")
    shell, script = container["livenessProbe"]["exec"]["command"]
    expect(shell == "/bin/bash", f"the liveness probe is run by {shell}")
    notes = sets["template"]["metadata"]["annotations"]
    expect(notes == {"prometheus.io/scrape": "true", "prometheus.io/port": str(serves), "prometheus.io/path": "/metrics"},
           f"the annotations for Prometheus are {notes}")
    host, port = env["HEARSAY_BOOTSTRAP"].split(":")
    expect(host == sets["serviceName"], f"HEARSAY_BOOTSTRAP: {host} is no service")
    expect(int(port) == ports["gossip"], f"HEARSAY_BOOTSTRAP: {port} is not the container's port")
    expect(env["HEARSAY_LISTEN"] == f"0.0.0.0:{port}", "HEARSAY_LISTEN: another port")
    expect(int(env["HEARSAY_MIN_PEERS"]) == sets["replicas"], "HEARSAY_MIN_PEERS is not the number of replicas")
    for one in container["envFrom"]:
        expect(("ConfigMap", one["configMapRef"]["name"]) in objects, f"envFrom: there is no {one}")

    claims = {c["metadata"]["name"] for c in sets["volumeClaimTemplates"]}
    volumes = {v["name"] for v in pod["volumes"]}
    mounts = {m["name"]: m["mountPath"] for m in container["volumeMounts"]}
    expect(set(mounts) == claims | volumes, f"mounted are {sorted(mounts)}, and there are {sorted(claims | volumes)}")
    for volume in pod["volumes"]:
        if "secret" in volume:
            expect(volume["secret"]["secretName"] in secrets, f"there is no secret {volume}")
        if "configMap" in volume:
            expect(("ConfigMap", volume["configMap"]["name"]) in objects, f"there is no {volume}")
    for path in (script, container["command"][1]):
        expect(path.startswith(mounts["start"] + "/") and path.rpartition("/")[2] in objects["ConfigMap", "start"]["data"],
               f"there is no script {path}")
    expect(mounts["out"] == env["HEARSAY_OUT"], "HEARSAY_OUT is no volume that stays")
    for name, path in (("HEARSAY_KEY", "key"), ("SECRET_KEY", "secret")):
        expect(env[name].startswith(mounts[path] + "/"), f"{name}={env[name]} is not in the volume {path}")
    expect(env["SECRET_KEY"].endswith("/" + kustomization["secretGenerator"][0]["files"][0]), "SECRET_KEY: no such file")
    for image in kustomization["images"]:
        expect(image["name"] == container["image"], f"the image {image['name']} is nobody's")

    # Requirements of the "restricted" pod security standard.
    expect(pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["runAsUser"] != 0, "it runs as root")
    expect(pod["securityContext"]["seccompProfile"]["type"] == "RuntimeDefault", "no seccomp profile")
    expect(container["securityContext"]["allowPrivilegeEscalation"] is False, "privileges can grow")
    expect(container["securityContext"]["capabilities"]["drop"] == ["ALL"], "it keeps capabilities")


def variables(objects):
    container = objects["StatefulSet", "peer"]["spec"]["template"]["spec"]["containers"][0]
    env = {}
    for source in container["envFrom"]:
        env.update(objects["ConfigMap", source["configMapRef"]["name"]]["data"])
    for one in container["env"]:
        if "value" in one:
            env[one["name"]] = one["value"]
    for name, value in env.items():
        expect(isinstance(value, str), f"{name}: {value!r} is no text, which a variable has to be")
    return env


def schema(path):
    import kubernetes_validate

    objects = [one for one in yaml.safe_load_all(path.read_text()) if one]
    expect(len(objects) == 7, f"{len(objects)} objects, expected 7")
    for one in objects:
        try:
            kubernetes_validate.validate(one, kubernetes_validate.latest_version(), strict=True)
        except kubernetes_validate.ValidationError as e:
            expect(False, f"{one['kind']} {one['metadata']['name']}: {'.'.join(map(str, e.path))}: {e.message}")


def main():
    what, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    if what == "check":
        check(folder)
    elif what == "start":
        print(load(folder)[1]["ConfigMap", "start"]["data"]["start.sh"], end="")
    elif what == "live":
        print(load(folder)[1]["ConfigMap", "start"]["data"]["live.sh"], end="")
    elif what == "ready":
        container = load(folder)[1]["StatefulSet", "peer"]["spec"]["template"]["spec"]["containers"][0]
        get = container["readinessProbe"]["httpGet"]
        print({p["name"]: p["containerPort"] for p in container["ports"]}[get["port"]], get["path"])
    elif what == "schema":
        schema(folder)
    elif what == "env":
        for name, value in variables(load(folder)[1]).items():
            print(f"{name}={value}")
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    return len(complaints) > 0


if __name__ == "__main__":
    sys.exit(main())

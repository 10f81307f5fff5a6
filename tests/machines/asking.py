"""Pods that use their service account against the API and keep a record: one reads its ca.crt at every request, one has read it when it began, as many programs do."""
from harness import until

# The node's own curl in any image: "moment status code" a line.
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: NAME}
spec:
  nodeName: NODE
  terminationGracePeriodSeconds: 1
  containers:
  - name: ask
    image: IMAGE
    imagePullPolicy: Never
    securityContext: {runAsUser: 0}
    command:
    - /bin/sh
    - -c
    - |
      S=/var/run/secrets/kubernetes.io/serviceaccount
      cp $S/ca.crt /tmp/once.crt
      while :; do
        code=$(curl -s -m 2 -o /dev/null -w '%{http_code}' --cacert CA -H "Authorization: Bearer $(cat $S/token)" https://$KUBERNETES_SERVICE_HOST/api)
        echo "$(date +%s.%N) $? $code"
        sleep 0.5
      done
    volumeMounts:
    - {name: usr, mountPath: /usr, readOnly: true}
    - {name: bin, mountPath: /bin, readOnly: true}
    - {name: lib, mountPath: /lib, readOnly: true}
    - {name: lib64, mountPath: /lib64, readOnly: true}
    - {name: tmp, mountPath: /tmp}
  volumes:
  - {name: usr, hostPath: {path: /usr}}
  - {name: bin, hostPath: {path: /usr/bin}}
  - {name: lib, hostPath: {path: /usr/lib}}
  - {name: lib64, hostPath: {path: /usr/lib64}}
  - {name: tmp, emptyDir: {}}
---
""".replace('"$(date +%s.%N) $? $code"', '"$(date +%s.%N) $r $code"').replace("/api)\n", "/api)\n        r=$?\n")
CAS = {"follows": "$S/ca.crt", "once": "/tmp/once.crt"}
UNTRUSTED = 60  # curl's status when the server's certificate is not believed


def start(m, node):
    image = m.kubectl("get", "deployment", "coredns", "-n", "kube-system", "-o", "jsonpath={.spec.template.spec.containers[0].image}")
    text = "".join(POD.replace("NAME", n).replace("NODE", node).replace("IMAGE", image).replace("CA -H", f"{ca} -H") for n, ca in CAS.items())
    (m.dir / "asking.yaml").write_text(text)
    m.kubectl("apply", "-f", str(m.dir / "asking.yaml"))
    for name in CAS:
        until(f"{name} asks", lambda: "0 200" in m.kubectl("logs", name, check=False).stdout)
    return list(CAS)


def asked(m, name):
    """[(moment, curl's status, HTTP's)]"""
    lines = [line.split() for line in m.kubectl("logs", name).splitlines()]
    return [(float(w), int(s), int(c)) for w, s, c in lines]


def refused(answers, codes=(401, 403)):
    """Those in which one did not believe the other: there must be none, whatever restarts. 403 is what an API server says that has not read its bindings yet: where
    there is another, nobody is sent to it before it has."""
    return [a for a in answers if a[1] == UNTRUSTED or a[2] in codes]


def gap(answers):
    good = [w for w, s, c in answers if (s, c) == (0, 200)]
    return max(b - a for a, b in zip(good, good[1:]))


def goes_on(m, name):
    n = len(asked(m, name))
    until(f"{name} still asks", lambda: asked(m, name)[n:] and asked(m, name)[-1][1:] == (0, 200))

"""majority_restarts.py HEARSAY DIR PORT0 PORT1 PORT2 -- restarts two of three peers between the final models and the certificate.

All peers have stored their final models. Two of them are stopped before their promise (vote of the finish protocol) is
stored, killed, and started again one after the other. Each of them takes the final model of the third peer. Exit code 0: all
peers end with exit code 0. 77: no try met the moment.

A killed peer is declared dead after about 8 s, and the other two peers may then end without it. Both peers start again within
4 s. On a slow machine the last peer may still be too late: its two neighbours name it as dead in their consensus. Such a try
does not count.
"""
import os
import shutil
import signal
import subprocess
import sys
import time

TRIES = 20


def run(hearsay, folder, ports, number):
    """Returns the exit codes of the peers, or None if the moment was missed."""
    out = os.path.join(folder, "majority-%d" % number)
    os.makedirs(out)
    subprocess.run([hearsay, "key", "new", out + "/key"], check=True, stderr=subprocess.DEVNULL)

    def start(i):
        with open("%s/p%d.log" % (out, i), "a") as log:
            return subprocess.Popen(
                [hearsay, "peer", "--name", "p%d" % i, "--listen", "127.0.0.1:" + ports[i], "--key", out + "/key",
                 "--bootstrap", ",".join("127.0.0.1:" + port for port in ports), "--model", "mlp:784-32-10",
                 "--topology", "star", "--rounds", "150", "--min-peers", "3", "--checkpoint", "0.5s",
                 "--quorum-timeout", "15", "--out", "%s/p%d" % (out, i)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def has(i, name):
        return os.path.exists("%s/p%d/%s" % (out, i, name))

    peers = [start(i) for i in range(3)]
    begin = time.monotonic()
    while not has(1, "model.safetensors") and time.monotonic() - begin < 60:
        pass
    for i in (0, 2):
        peers[i].send_signal(signal.SIGSTOP)
    met = has(1, "model.safetensors") and not has(0, "promise") and not has(2, "promise")
    for i in (0, 2) if met else (0, 1, 2):
        peers[i].kill()
        peers[i].wait()
    if not met:
        shutil.rmtree(out)
        return None
    for i in (2, 0):
        time.sleep(2)
        peers[i] = start(i)
    codes = [peer.wait(120) for peer in peers]
    with open(out + "/p1.log") as log:
        if codes == [3, 0, 0] and "consensus of 2 of 3 peers (dead: p0)" in log.read():
            return None
    return codes


def main():
    hearsay, folder, ports = sys.argv[1], sys.argv[2], sys.argv[3:]
    for number in range(TRIES):
        codes = run(hearsay, folder, ports, number)
        if codes is not None:
            print(codes)
            sys.exit(0 if codes == [0, 0, 0] else 1)
    sys.exit(77)


main()

#!/usr/bin/env python3
"""An attacker without the cluster key: junk.py PORT COUNT [SEED].

Opens COUNT connections, a few at a time. On each connection the attacker sends random bytes: none, one, as many as the
first handshake message has, or many more. Prints the number of bytes that the peer sent back. Exits with 1 if the peer
sent any byte back.
"""
import random
import socket
import sys

AT_ONCE = 16
SIZES = [0, 1, 47, 48, 49, 96, 200, 4096, 70000]


def connect(port):
    s = socket.create_connection(("127.0.0.1", port), timeout=20)
    s.settimeout(2)
    return s


def answer_of(s):
    """Returns the number of bytes that the other end sends until it closes the connection or is silent for a while."""
    got = 0
    try:
        while chunk := s.recv(65536):
            got += len(chunk)
    except OSError:
        pass
    s.close()
    return got


def main():
    port, count = int(sys.argv[1]), int(sys.argv[2])
    rng = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    got = sent = refused = 0
    held = []
    for i in range(count):
        try:
            s = connect(port)
        except OSError:
            refused += 1
            continue
        junk = rng.randbytes(rng.choice(SIZES))
        try:
            s.sendall(junk)
            sent += len(junk)
            if i % 2:
                s.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        held.append((s, len(junk)))
        if len(held) >= AT_ONCE:
            first, length = held.pop(0)
            if length < 48 and i % 100:
                # The first handshake message has 48 bytes. The peer waits until its deadline for the rest of a shorter
                # message. To save time, the attacker closes most of these connections first.
                first.close()
            else:
                got += answer_of(first)
    for s, _ in held:
        got += answer_of(s)
    print(f"{count} connections, {refused} refused, {sent} bytes sent, {got} bytes back")
    sys.exit(1 if got else 0)


main()

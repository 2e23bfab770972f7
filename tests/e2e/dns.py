"""A name server for one test, on port 53 of ADDRESS: dns.py ADDRESS FILE

FILE is read for each question. A line has a name and an address. A name with several lines has several addresses, whose order
changes from answer to answer, as with a headless service of Kubernetes. Other names do not exist, and only address records are
served. Prints "ready", and then one line per question: the name, its type, and the number of addresses.
"""
import socket
import struct
import sys

A, IN, NXDOMAIN = 1, 1, 3
TYPES = {1: "A", 28: "AAAA"}
TTL_S = 5


def question(packet):
    """Returns the name in a question, its type, and the position where the question ends."""
    labels, at = [], 12
    while packet[at]:
        labels.append(packet[at + 1 : at + 1 + packet[at]].decode().lower())
        at += 1 + packet[at]
    (kind,) = struct.unpack_from(">H", packet, at + 1)
    return ".".join(labels), kind, at + 5


def answer(packet, records, turn):
    name, kind, end = question(packet)
    known = [address for one, address in records if one == name]
    found = known if kind == A else []
    if found:
        turn %= len(found)
        found = found[turn:] + found[:turn]
    print(name, TYPES.get(kind, kind), len(found), flush=True)
    flags = 0x8400 | struct.unpack_from(">H", packet, 2)[0] & 0x0100 | (0 if known else NXDOMAIN)
    head = packet[:2] + struct.pack(">HHHHH", flags, 1, len(found), 0, 0)
    body = b"".join(struct.pack(">HHHIH", 0xC00C, A, IN, TTL_S, 4) + socket.inet_aton(one) for one in found)
    return head + packet[12:end] + body


def main():
    address, path = sys.argv[1:]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind((address, 53))
        print("ready", flush=True)
        turn = 0
        while True:
            packet, whom = server.recvfrom(512)
            with open(path, encoding="ascii") as f:
                records = [line.split() for line in f if line.strip()]
            turn += 1
            try:
                server.sendto(answer(packet, records, turn), whom)
            except (IndexError, struct.error, UnicodeDecodeError):
                pass  # Ignores a packet that is not a valid question.


if __name__ == "__main__":
    main()

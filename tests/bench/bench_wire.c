/* tests/bench/bench_wire.c -- a switch between network namespaces with long cables.
 *
 *   bench_wire DELAY_US KBIT NAMESPACE...
 *
 * Some kernels lack netem, which delays packets. This program replaces it. Each namespace gets a
 * TUN device eth0, whose other end is this process. The process forwards each IPv4 packet to the
 * namespace with the number (last byte of the destination - 1), as if the packet went through two
 * cables:
 *
 *   namespace i --- DELAY_US ---> one queue per namespace, emptied at KBIT kbit/s ---> namespace j
 *
 * A packet that waits in a queue for more than 0.1 s beyond the delay is dropped. The sending side
 * is shaped by tc tbf on eth0, not here. Prints "ready" when the devices exist. Runs until it is
 * killed, which removes the devices. A packet costs one copy and two system calls: fast enough for
 * a WAN, not for a gigabit link. Used by tests/bench/race. */
#define _GNU_SOURCE /* Makes the headers declare setns() and ppoll(). */
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { HOSTS_MAX = 64, PACKET_MAX = 65536, AT_ONCE = 64, WAIT_MAX_US = 100000, IPV4_HEADER = 20 };

struct packet
{
    struct packet *next;
    int64_t due_us;
    size_t n;
    unsigned char bytes[];
};

/* Packets on the way to one namespace, in the order of their delivery times. */
struct cable
{
    int fd;
    struct packet *first, **end;
    int64_t free_us; /* Time until which the simulated cable transmits queued packets. */
};

static struct cable cables[HOSTS_MAX];
static int n_cables;
static int64_t delay_us;
static double us_per_byte;

static int64_t now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void die(const char *what)
{
    fprintf(stderr, "bench_wire: %s: %s\n", what, strerror(errno));
    exit(2);
}

/* Creates a TUN device in the namespace `name`. The process stays in this namespace until the
 * next call. */
static int device_in(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "/run/netns/%s", name);
    int namespace = open(path, O_RDONLY | O_CLOEXEC);
    if (namespace < 0 || setns(namespace, CLONE_NEWNET) < 0)
        die(path);
    close(namespace);
    int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    struct ifreq request = {.ifr_name = "eth0", .ifr_flags = IFF_TUN | IFF_NO_PI};
    if (fd < 0 || ioctl(fd, TUNSETIFF, &request) < 0)
        die("/dev/net/tun");
    return fd;
}

/* Queues a packet for the namespace of its destination address. Packets for other addresses are
 * dropped. */
static void forward(const unsigned char *bytes, size_t n)
{
    if (n < IPV4_HEADER || bytes[0] >> 4 != 4)
        return;
    int to = bytes[19] - 1;
    if (to < 0 || to >= n_cables)
        return;
    struct cable *c = &cables[to];
    int64_t arrives = now_us() + delay_us;
    int64_t starts = c->free_us > arrives ? c->free_us : arrives;
    if (starts > arrives + WAIT_MAX_US)
        return;
    struct packet *p = malloc(sizeof *p + n);
    if (p == NULL)
        die("malloc");
    c->free_us = starts + (int64_t)((double)n * us_per_byte);
    *p = (struct packet){.due_us = c->free_us, .n = n};
    memcpy(p->bytes, bytes, n);
    *c->end = p;
    c->end = &p->next;
}

/* Delivers the packets whose time has come. Returns the delivery time of the next packet, or
 * INT64_MAX if the cable is empty. */
static int64_t deliver(struct cable *c)
{
    int64_t now = now_us();
    while (c->first != NULL && c->first->due_us <= now) {
        struct packet *p = c->first;
        if (write(c->fd, p->bytes, p->n) < 0 && errno != EAGAIN && errno != EIO)
            die("write"); /* EIO means that the TUN device is not up yet. */
        c->first = p->next;
        if (c->first == NULL)
            c->end = &c->first;
        free(p);
    }
    return c->first == NULL ? INT64_MAX : c->first->due_us;
}

static void take_in(int fd)
{
    static unsigned char bytes[PACKET_MAX];
    for (int k = 0; k < AT_ONCE; k++) {
        ssize_t n = read(fd, bytes, sizeof bytes);
        if (n <= 0)
            return;
        forward(bytes, (size_t)n);
    }
}

/* Waits for a packet from one of the devices, or until `until_us`. */
static void await(struct pollfd *polls, int64_t until_us)
{
    int64_t left = until_us == INT64_MAX ? 1000000 : until_us - now_us();
    if (left < 0)
        left = 0;
    struct timespec t = {left / 1000000, left % 1000000 * 1000};
    if (ppoll(polls, (nfds_t)n_cables, &t, NULL) < 0 && errno != EINTR)
        die("ppoll");
}

int main(int argc, char **argv)
{
    if (argc < 4 || argc - 3 > HOSTS_MAX) {
        fprintf(stderr, "usage: bench_wire DELAY_US KBIT NAMESPACE...\n");
        return 2;
    }
    delay_us = atoll(argv[1]);
    us_per_byte = 8e3 / atof(argv[2]);
    n_cables = argc - 3;
    struct pollfd polls[HOSTS_MAX];
    for (int i = 0; i < n_cables; i++) {
        struct cable *c = &cables[i];
        c->fd = device_in(argv[3 + i]);
        c->end = &c->first;
        polls[i] = (struct pollfd){.fd = c->fd, .events = POLLIN};
    }
    printf("ready\n");
    fflush(stdout);
    for (;;) {
        int64_t next = INT64_MAX;
        for (int i = 0; i < n_cables; i++) {
            int64_t due = deliver(&cables[i]);
            next = due < next ? due : next;
        }
        await(polls, next);
        for (int i = 0; i < n_cables; i++)
            if (polls[i].revents & POLLIN)
                take_in(polls[i].fd);
    }
}

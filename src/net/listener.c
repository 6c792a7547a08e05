#include "net/listener.h"

#include <errno.h>
#include <linux/filter.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "net/listener_int.h"

enum { LISTENER_BATCH = 16, LISTENER_RESERVE = 64, LISTENER_LAST_MOST = 4096 };

static const TimeNs LISTENER_SECOND = 1000000000;
static const TimeNs LISTENER_RETRY = 50000000;  // after descriptors ran out
static const TimeNs LISTENER_FULL = 5000000;    // while no connection may be closed for another
static const TimeNs LISTENER_TRIM = 5000000000;
static const TimeNs LISTENER_LOOK = 250000000;  // at late responses
static const TimeNs LISTENER_LAST =
    50000000;  // for connections being established when draining begins

static void listener_fill(ListenerLimits *o, bool shared) {
    if (!o->connections) o->connections = 1024;
    if (!o->streams) o->streams = 128;
    if (!o->headers) o->headers = 64;
    if (!o->header_bytes) o->header_bytes = 16384;
    if (!o->body_bytes) o->body_bytes = (size_t)64 << 20;
    if (!o->held_bytes && !shared) o->held_bytes = (size_t)512 << 20;
    if (!o->header_ns) o->header_ns = 10 * LISTENER_SECOND;
    if (!o->body_ns) o->body_ns = 60 * LISTENER_SECOND;
    if (!o->idle_ns) o->idle_ns = 75 * LISTENER_SECOND;
    if (!o->write_ns) o->write_ns = 30 * LISTENER_SECOND;
}

// Descriptors are allocated from the lowest number: a high one means that few are left for files
// and models.
static bool listener_scarce(int fd) {
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) != 0 || r.rlim_cur == RLIM_INFINITY) return false;
    rlim_t reserve = r.rlim_cur / 4 < LISTENER_RESERVE ? r.rlim_cur / 4 : LISTENER_RESERVE;
    return (rlim_t)fd + reserve >= r.rlim_cur;
}

// Whether the listener is full. The descriptor limit, once hit, is remembered until most are free.
static bool listener_full(Listener *l, int fd) {
    if (l->counts.open <= l->room / 2) l->room = l->options.limits.connections;
    if (listener_scarce(fd) && l->counts.open < l->room) l->room = l->counts.open;
    return l->counts.open >= l->room;
}

static void listener_drain_stream(Stream *s) {
    if (s->draining) return;
    s->draining = true;
    s->kind->drain(s);
}

static void listener_evict(Listener *l, Stream *victim) {
    l->counts.evicted++;
    stream_close(victim);
}

static void listener_take(Listener *l, int fd) {
    Stream  *victim = NULL, *s = NULL;
    uint64_t key = 0;
    bool     full = listener_full(l, fd);
    if (full) victim = listener_victim(l, peer_key(fd, &key) ? peer_find(&l->peers, key) : NULL);
    if (victim) listener_evict(l, victim);
    if (full && !victim)
        close(fd);
    else
        s = stream_adopt(l, fd);
    if (s)
        l->counts.accepted++;
    else
        l->counts.refused++;
    if (s && l->draining) listener_drain_stream(s);
}

// Stops accepting for a while.
static void listener_pause(Listener *l, TimeNs time) {
    loop_events(l->loop, &l->watch, 0);
    CHECK(loop_arm(l->loop, &l->retry, loop_now(l->loop) + time) == ERR_OK);
}

// Stops accepting for a while, so that a failing accept is not retried in a busy loop.
static void listener_back_off(Listener *l) {
    Stream *victim = listener_victim(l, NULL);
    if (victim) listener_evict(l, victim);
    listener_pause(l, LISTENER_RETRY);
}

// False: the backlog is empty, or accepting cannot go on.
static bool listener_accept(Listener *l) {
    int fd = accept4(l->watch.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
        listener_take(l, fd);
        return true;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) return false;
    if (errno == EINTR || errno == ECONNABORTED || errno == EPROTO) return true;
    listener_back_off(l);
    return false;
}

static bool listener_has_waiting(const Listener *l) {
    for (int i = STREAM_PART; i < STREAM_USES; i++)
        if (l->uses[i].first) return true;
    return false;
}

// Whether all places are taken, and some will be free soon. Those taken in this round get the
// chance to send a request first; others have a second for their next one.
static bool listener_saturated(Listener *l) {
    bool fresh = l->uses[STREAM_NEW].first || l->uses[STREAM_PART].first;
    if (l->counts.open < l->room || (!fresh && !listener_has_waiting(l)) ||
        listener_victim(l, NULL))
        return false;
    if (!fresh) listener_pause(l, LISTENER_FULL);
    return true;
}

static void listener_ready(void *self, uint32_t events) {
    Listener *l = self;
    (void)events;
    for (int i = 0; i < LISTENER_BATCH && !listener_saturated(l) && listener_accept(l); i++) {
    }
}

void listener_reap_soon(Listener *l, TimeNs at) {
    if (at < l->reap.at) CHECK(loop_arm(l->loop, &l->reap, at) == ERR_OK);
}

static void listener_bury(Listener *l) {
    while (l->dead) {
        Stream *s = l->dead;
        l->dead = s->next;
        free(s);
    }
}

// Bytes in use beyond three quarters of the memory.
static size_t listener_pressure(const Listener *l) {
    const Budget *b = l->options.budget ? l->options.budget : &l->slabs->budget;
    size_t        used = budget_used(b), most = b->most / 4 * 3;
    return b->most > 0 && used > most ? used - most : 0;
}

static void listener_reap(void *self) {
    Listener *l = self;
    TimeNs    now = loop_now(l->loop);
    listener_bury(l);
    if (l->unread.first && listener_pressure(l) > 0)
        (void)listener_make_room(l, listener_pressure(l));
    if (now - l->trimmed >= LISTENER_TRIM) {
        slab_trim(l->slabs);
        slab_trim(l->pages);
        l->trimmed = now;
    }
    bool   sweeping = slab_sweep(l->slabs);  // also what was trimmed: there may be no later turn
    bool   spare = l->slabs->spare || l->pages->spare || l->counts.open;
    TimeNs next = spare ? now + LISTENER_TRIM : INT64_MAX;
    if (l->unread.first) next = now + LISTENER_LOOK;
    CHECK(loop_arm(l->loop, &l->reap, sweeping || l->dead ? now : next) == ERR_OK);
}

static void listener_remember_file(Listener *l) {
    struct stat st;
    if (l->address.any.sa_family != AF_UNIX || lstat(l->address.local.sun_path, &st) != 0) return;
    l->file_dev = st.st_dev;
    l->file_ino = st.st_ino;
}

static void listener_remove_file(const Listener *l) {
    struct stat st;
    if (l->address.any.sa_family != AF_UNIX || lstat(l->address.local.sun_path, &st) != 0) return;
    if (S_ISSOCK(st.st_mode) && st.st_dev == l->file_dev && st.st_ino == l->file_ino)
        unlink(l->address.local.sun_path);
}

static void listener_shut(Listener *l) {
    if (l->watch.fd < 0) return;
    loop_forget(l->loop, &l->watch);
    listener_remove_file(l);
    close(l->watch.fd);
    l->watch.fd = -1;
}

static void listener_again(void *self) {
    Listener *l = self;
    if (!l->draining) {
        loop_events(l->loop, &l->watch, EPOLLIN);
        bool deaf = l->watch.events != EPOLLIN;
        CHECK(loop_arm(l->loop, &l->retry, deaf ? loop_now(l->loop) + LISTENER_RETRY : INT64_MAX) ==
              ERR_OK);
        return;
    }
    CHECK(loop_arm(l->loop, &l->retry, INT64_MAX) == ERR_OK);
    for (int i = 0; i < LISTENER_LAST_MOST && listener_accept(l); i++) {
    }
    listener_shut(l);
}

// Refuses new connections but keeps the backlog: without this, a client that
// connects between the last accept and close would be reset.
static void listener_deafen(const Listener *l) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, offsetof(struct tcphdr, th_flags)),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, TH_SYN | TH_ACK),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TH_SYN, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, 0),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    listener_remove_file(l);
    if (l->address.any.sa_family != AF_UNIX)
        (void)setsockopt(l->watch.fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}

static Err listener_start(Listener *l) {
    TRY(address_read(l->options.address, &l->address));
    TRY(address_listen(&l->address, &l->watch.fd));
    listener_remember_file(l);
    address_text(&l->address, l->text);
    l->options.address = l->text;
    TRY(loop_arm(l->loop, &l->retry, INT64_MAX));
    TRY(loop_arm(l->loop, &l->reap, INT64_MAX));
    return loop_watch(l->loop, &l->watch);
}

Err listener_open(Listener **out, Loop *loop, const ListenerOptions *o) {
    Listener *l = calloc(1, sizeof *l);
    if (!l) return err_set(ERR_LIMIT, "no memory for a listener");
    l->loop = loop;
    l->options = *o;
    listener_fill(&l->options.limits, o->budget != NULL);
    l->kind = o->protocol == LISTENER_HTTP2 ? &stream_http2 : &stream_http1;
    l->watch = (LoopFd){.fd = -1, .events = EPOLLIN, .ready = listener_ready, .self = l};
    l->retry = (LoopTimer){.fire = listener_again, .self = l};
    l->reap = (LoopTimer){.fire = listener_reap, .self = l};
    l->room = l->options.limits.connections;
    l->slabs = slab_pool_new(l->options.limits.held_bytes, o->budget);
    l->pages = slab_pool_new(0, o->budget);
    Err e =
        l->slabs && l->pages ? listener_start(l) : err_set(ERR_LIMIT, "no memory for a listener");
    if (e != ERR_OK) {
        listener_close(l);
        return e;
    }
    *out = l;
    return ERR_OK;
}

const char *listener_address(const Listener *l) { return l->text; }

ListenerCounts listener_counts(const Listener *l) {
    ListenerCounts c = l->counts;
    c.body_bytes = budget_used(&l->slabs->budget) + budget_used(&l->slabs->small);
    c.held_bytes = c.body_bytes + budget_used(&l->pages->budget) + budget_used(&l->pages->small);
    return c;
}

// Connections in the backlog are served.
void listener_drain(Listener *l) {
    if (l->draining) return;
    l->draining = true;
    listener_deafen(l);
    listener_ready(l, EPOLLIN);
    for (Stream *s = l->oldest, *next; s; s = next) {
        next = s->next;
        listener_drain_stream(s);
    }
    CHECK(loop_arm(l->loop, &l->retry, loop_now(l->loop) + LISTENER_LAST) == ERR_OK);
}

bool listener_drained(const Listener *l) { return !l->oldest && l->watch.fd < 0; }

void listener_close(Listener *l) {
    if (!l) return;
    listener_shut(l);
    while (l->oldest) stream_close(l->oldest);
    loop_disarm(l->loop, &l->retry);
    loop_disarm(l->loop, &l->reap);
    listener_bury(l);
    slab_pool_close(l->slabs);
    slab_pool_close(l->pages);
    free(l);
}

Err listener_is_local(const char *address, bool *out) {
    Address a;
    TRY(address_read(address, &a));
    *out = address_is_local(&a);
    return ERR_OK;
}

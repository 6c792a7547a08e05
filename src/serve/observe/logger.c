// The ring is a bounded MPSC queue: the slot of position p may be filled when its turn is p, and be
// taken when it is p + 1. Each line is one write(), so lines survive a crash and never interleave.
#include "serve/observe/logger.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/sync.h"
#include "base/thread.h"

enum { RATE = 200, ROOM = 512, PATIENCE_MS = 100 };
static const TimeNs second_ns = 1000000000;

typedef struct Slot {
    _Atomic uint64_t turn;
    uint32_t         len;
    char             line[LOG_BYTES];
} Slot;

struct Logger {
    Arena            arena;
    Log              log;   // for callers
    Log              own;   // of the writer thread: straight to the file
    const char      *path;  // NULL: standard error
    int              fd;
    bool             torn;  // the last write was incomplete
    uint32_t         rate;
    uint64_t         mask, head;
    Slot            *slots;  // [mask + 1]
    pthread_t        thread;
    _Atomic uint32_t wake;  // futex: incremented to wake the writer
    _Atomic bool     asleep, stop, again;
    _Atomic uint64_t window;  // high half: current second; low half: lines in it
    _Atomic uint64_t written, suppressed, dropped;
    _Atomic uint64_t reported_suppressed;  // already reported in the log
    uint64_t         reported_dropped;
    _Alignas(64) _Atomic uint64_t tail;
};

static void wake_writer(Logger *l) {
    atomic_fetch_add(&l->wake, 1);
    if (atomic_load(&l->asleep)) futex_wake(&l->wake, 1);
}

// Counts one more line in the current second; false: the rate limit is reached.
static bool within_rate(Logger *l) {
    uint64_t now = (uint64_t)(clock_monotonic_ns() / second_ns) << 32;
    uint64_t old = atomic_load_explicit(&l->window, memory_order_relaxed), next;
    do {
        uint64_t used = old >= now ? old & UINT32_MAX : 0, since = old >= now ? old - used : now;
        if (used >= l->rate) return false;
        next = since + used + 1;
    } while (!atomic_compare_exchange_weak_explicit(&l->window, &old, next, memory_order_relaxed,
                                                    memory_order_relaxed));
    return true;
}

static Slot *claim(Logger *l, uint64_t *position) {
    uint64_t at = atomic_load_explicit(&l->tail, memory_order_relaxed);
    for (;;) {
        Slot    *s = &l->slots[at & l->mask];
        uint64_t turn = atomic_load_explicit(&s->turn, memory_order_acquire);
        if (turn < at) return NULL;
        if (turn > at) {
            at = atomic_load_explicit(&l->tail, memory_order_relaxed);
            continue;
        }
        if (atomic_compare_exchange_weak_explicit(&l->tail, &at, at + 1, memory_order_relaxed,
                                                  memory_order_relaxed)) {
            *position = at;
            return s;
        }
    }
}

static bool admit(void *self) {
    Logger *l = self;
    if (within_rate(l)) return true;
    if (atomic_fetch_add(&l->suppressed, 1) == atomic_load(&l->reported_suppressed)) wake_writer(l);
    return false;
}

static void put(void *self, const char *line, size_t len) {
    Logger  *l = self;
    uint64_t at = 0;
    Slot    *s = claim(l, &at);
    if (s == NULL) {
        atomic_fetch_add(&l->dropped, 1);
        return;
    }
    memcpy(s->line, line, len);
    s->len = (uint32_t)len;
    atomic_store_explicit(&s->turn, at + 1, memory_order_release);
    wake_writer(l);
}

// Waits until the file accepts data; once stopping, only if it does so at once.
static bool writable(Logger *l) {
    struct pollfd p = {.fd = l->fd, .events = POLLOUT};
    for (;;) {
        bool stop = atomic_load(&l->stop);
        int  n = poll(&p, 1, stop ? 0 : PATIENCE_MS);
        if (n > 0) return (p.revents & POLLOUT) != 0;
        if (stop || (n < 0 && errno != EINTR)) return false;
    }
}

static ssize_t write_some(Logger *l, const char *at, size_t n) {
    ssize_t did = -1;
    do {
        if (!writable(l)) return -1;
        did = write(l->fd, at, n);
    } while (did < 0 && (errno == EINTR || errno == EAGAIN));
    return did;
}

static void write_line(void *self, const char *line, size_t len) {
    Logger *l = self;
    if (l->torn && write_some(l, "\n", 1) == 1) l->torn = false;
    size_t done = 0;
    while (done < len && !l->torn) {
        ssize_t n = write_some(l, line + done, len - done);
        if (n <= 0) break;
        done += (size_t)n;
    }
    l->torn = l->torn || (done > 0 && done < len);
    atomic_fetch_add_explicit(done == len ? &l->written : &l->dropped, 1, memory_order_relaxed);
}

static Err open_file(const char *path, int *fd) {
    *fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0640);
    return *fd >= 0 ? ERR_OK : file_failed("opening the log", path);
}

// If the file cannot be opened, the old one stays in use.
static void open_again(Logger *l) {
    int fd = -1;
    if (l->path == NULL) return;
    if (open_file(l->path, &fd) != ERR_OK) {
        log_with(&l->own, LOG_ERROR, "cannot reopen the log; the old file stays in use",
                 log_text("why", err_why()));
        return;
    }
    (void)close(l->fd);
    l->fd = fd;
    l->torn = false;
    log_line(&l->own, LOG_INFO, "log reopened");
}

static bool take(Logger *l) {
    Slot *s = &l->slots[l->head & l->mask];
    if (atomic_load_explicit(&s->turn, memory_order_acquire) != l->head + 1) return false;
    write_line(l, s->line, s->len);
    atomic_store_explicit(&s->turn, l->head + l->mask + 1, memory_order_release);
    l->head++;
    return true;
}

// Reports suppressed and dropped lines, at most once per second. True: some are still to report.
static bool report_lost(Logger *l, TimeNs *next) {
    uint64_t suppressed = atomic_load(&l->suppressed), dropped = atomic_load(&l->dropped);
    uint64_t told = atomic_load(&l->reported_suppressed);
    if (suppressed == told && dropped == l->reported_dropped) return false;
    TimeNs now = clock_monotonic_ns();
    if (now < *next) return true;
    *next = now + second_ns;
    log_with(&l->own, LOG_WARN, "log lines lost",
             log_int("suppressed", (int64_t)(suppressed - told)),
             log_int("dropped", (int64_t)(dropped - l->reported_dropped)));
    atomic_store(&l->reported_suppressed, suppressed);
    l->reported_dropped = atomic_load(&l->dropped);
    return false;
}

static void *serve(void *self) {
    Logger *l = self;
    TimeNs  next = 0;
    for (;;) {
        uint32_t seen = atomic_load(&l->wake);
        if (atomic_exchange(&l->again, false)) open_again(l);
        while (take(l)) continue;
        bool more = report_lost(l, &next), stop = atomic_load(&l->stop);
        if (stop && atomic_load(&l->tail) == l->head) return NULL;
        atomic_store(&l->asleep, true);
        if (more || stop)
            futex_wait_for(&l->wake, seen, stop ? 1000000 : second_ns / 4);
        else
            futex_wait(&l->wake, seen);
        atomic_store(&l->asleep, false);
    }
}

static uint64_t room_of(const LoggerOptions *o) {
    uint64_t room = 1;
    while (room < (o->room > 0 ? o->room : ROOM)) room *= 2;
    return room;
}

static Logger *lay_out(const LoggerOptions *o, Arena *a) {
    uint64_t room = room_of(o);
    Logger  *l = arena_new(a, Logger, 1);
    l->slots = arena_new(a, Slot, room);
    l->mask = room - 1;
    for (uint64_t i = 0; i < room; i++) atomic_init(&l->slots[i].turn, i);
    l->path = o->file != NULL && *o->file != '\0' ? arena_str(a, o->file) : NULL;
    l->rate = o->rate > 0 ? o->rate : RATE;
    l->fd = STDERR_FILENO;
    l->log = (Log){.min_level = o->least, .clock = clock_realtime(), .format = o->format};
    l->own = l->log;
    l->log.put = put;
    l->log.admit = admit;
    l->own.put = write_line;
    l->log.self = l->own.self = l;
    return l;
}

Err logger_create(Logger **out, const LoggerOptions *o) {
    Arena  a = {0};
    size_t path = o->file != NULL ? strlen(o->file) : 0;
    TRY(arena_init(&a, sizeof(Logger) + room_of(o) * sizeof(Slot) + path + 128));
    Logger *l = lay_out(o, &a);
    l->arena = a;
    Err e = l->path != NULL ? open_file(l->path, &l->fd) : ERR_OK;
    if (e == ERR_OK) e = thread_start(&l->thread, "log", serve, l);
    if (e == ERR_OK) {
        *out = l;
        return ERR_OK;
    }
    if (l->path != NULL && l->fd >= 0) (void)close(l->fd);
    arena_finish(&a);
    return e;
}

void logger_destroy(Logger *l) {
    if (l == NULL) return;
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 2;
    atomic_store(&l->stop, true);
    wake_writer(l);
    if (pthread_timedjoin_np(l->thread, NULL, &until) != 0)
        return;  // the writer hangs on its disk: leak it
    if (l->path != NULL) (void)close(l->fd);
    Arena a = l->arena;
    arena_finish(&a);
}

const Log *logger_log(const Logger *l) { return &l->log; }

void logger_reopen(Logger *l) {
    atomic_store(&l->again, true);
    wake_writer(l);
}

LoggerCounts logger_counts(const Logger *l) {
    return (LoggerCounts){.written = atomic_load(&l->written),
                          .suppressed = atomic_load(&l->suppressed),
                          .dropped = atomic_load(&l->dropped)};
}

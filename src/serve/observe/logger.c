// The ring is a bounded MPSC queue: the slot of position p may be filled when its turn is p, and be
// taken when it is p + 1. Life-cycle lines that do not fit into it go to a list on the heap, which
// the writer empties after the ring. Each line is one write(), so lines survive a crash and never
// interleave.
#include "serve/observe/logger.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/sync.h"
#include "base/thread.h"

enum {
    RATE = 200,
    ROOM = 512,
    WAITING_MOST = 1 << 14,  // life-cycle lines on the heap
    PATIENCE_MS = 100,
    TEXT_BYTES = 4096,  // of a file, looked at before it is appended to
};
static const TimeNs second_ns = 1000000000;

typedef struct Slot {
    _Atomic uint64_t turn;
    uint32_t         len;
    char             line[LOG_BYTES];
} Slot;

typedef struct WaitingLine {
    struct WaitingLine *next;
    size_t              len;
    char                line[];
} WaitingLine;

struct Logger {
    Arena                  arena;
    Log                    log, requests;  // for callers
    Log                    own;            // of the writer thread: straight to the file
    const char            *path;           // NULL: standard error
    int                    fd;
    bool                   torn;  // the last write was incomplete
    uint32_t               rate;
    uint64_t               mask, head;
    Slot                  *slots;  // [mask + 1]
    pthread_t              thread;
    _Atomic uint32_t       wake;  // futex: incremented to wake the writer
    _Atomic bool           asleep, stop, again;
    _Atomic uint64_t       window;  // high half: current second; low half: lines in it
    _Atomic uint64_t       written, suppressed, dropped;
    _Atomic uint64_t       reported_suppressed;  // already reported in the log
    uint64_t               reported_dropped;
    _Atomic uint32_t       n_waiting;
    _Atomic(WaitingLine *) waiting;  // newest first
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

static bool put_in_ring(Logger *l, const char *line, size_t len) {
    uint64_t at = 0;
    Slot    *s = claim(l, &at);
    if (s == NULL) return false;
    memcpy(s->line, line, len);
    s->len = (uint32_t)len;
    atomic_store_explicit(&s->turn, at + 1, memory_order_release);
    wake_writer(l);
    return true;
}

static void put_request(void *self, const char *line, size_t len) {
    Logger *l = self;
    if (!put_in_ring(l, line, len)) atomic_fetch_add(&l->dropped, 1);
}

static bool put_waiting(Logger *l, const char *line, size_t len) {
    bool         room = atomic_fetch_add(&l->n_waiting, 1) < WAITING_MOST;
    WaitingLine *w = room ? malloc(sizeof *w + len) : NULL;
    if (w == NULL) {
        atomic_fetch_sub(&l->n_waiting, 1);
        return false;
    }
    w->len = len;
    memcpy(w->line, line, len);
    w->next = atomic_load(&l->waiting);
    while (!atomic_compare_exchange_weak(&l->waiting, &w->next, w)) continue;
    wake_writer(l);
    return true;
}

// While lines wait on the heap, further ones wait behind them: their order is kept.
static void put_line(void *self, const char *line, size_t len) {
    Logger *l = self;
    if (atomic_load(&l->n_waiting) == 0 && put_in_ring(l, line, len)) return;
    if (!put_waiting(l, line, len)) atomic_fetch_add(&l->dropped, 1);
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

// Appending to a model or a database would destroy it: a log is text.
static Err check_text(const char *path, int fd) {
    char        head[TEXT_BYTES];
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size == 0) return ERR_OK;
    int     in = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    ssize_t n = in >= 0 ? read(in, head, sizeof head) : 0;
    if (in >= 0) (void)close(in);
    if (n <= 0 || memchr(head, '\0', (size_t)n) == NULL) return ERR_OK;
    return err_set(ERR_CONFIG,
                   "%s is not a log: it has binary data and is left as it is; name another file",
                   path);
}

static Err open_file(const char *path, bool create, int *fd) {
    int flags = O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    *fd = open(path, create ? flags | O_CREAT : flags, 0640);
    if (*fd < 0) {
        int why = errno;
        (void)file_failed("write the log to", path);
        errno = why;
        return err_add(ERR_CONFIG, "log_file");
    }
    Err e = check_text(path, *fd);
    if (e == ERR_OK) return e;
    (void)close(*fd);
    *fd = -1;
    return err_add(e, "log_file");
}

Err logger_check(const char *path) {
    char folder[4096];
    int  fd = -1;
    if (access(path, F_OK) == 0) {
        TRY(open_file(path, false, &fd));
        (void)close(fd);
        return ERR_OK;
    }
    TRY(file_folder(path, folder, sizeof folder));
    if (errno == ENOENT && access(folder, W_OK | X_OK) == 0) return ERR_OK;
    (void)file_failed("write the log to", path);
    return err_add(ERR_CONFIG, "log_file");
}

// If the file cannot be opened, the old one stays in use.
static void open_again(Logger *l) {
    int fd = -1;
    if (l->path == NULL) return;
    if (open_file(l->path, true, &fd) != ERR_OK) {
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

static bool take_waiting(Logger *l) {
    WaitingLine *newest = atomic_exchange(&l->waiting, NULL), *oldest = NULL;
    uint32_t     n = 0;
    while (newest != NULL) {
        WaitingLine *next = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    for (; oldest != NULL; n++) {
        WaitingLine *next = oldest->next;
        write_line(l, oldest->line, oldest->len);
        free(oldest);
        oldest = next;
    }
    atomic_fetch_sub(&l->n_waiting, n);
    return n > 0;
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
        while (take(l) || take_waiting(l)) continue;
        bool more = report_lost(l, &next), stop = atomic_load(&l->stop);
        bool empty = atomic_load(&l->tail) == l->head && atomic_load(&l->n_waiting) == 0;
        if (stop && empty) return NULL;
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
    l->log.self = l;
    l->own = l->requests = l->log;
    l->log.put = put_line;
    l->requests.put = put_request;
    l->requests.admit = admit;
    l->own.put = write_line;
    return l;
}

Err logger_create(Logger **out, const LoggerOptions *o) {
    Arena  a = {0};
    size_t path = o->file != NULL ? strlen(o->file) : 0;
    TRY(arena_init(&a, sizeof(Logger) + room_of(o) * sizeof(Slot) + path + 128));
    Logger *l = lay_out(o, &a);
    l->arena = a;
    Err e = l->path != NULL ? open_file(l->path, true, &l->fd) : ERR_OK;
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
const Log *logger_requests(const Logger *l) { return &l->requests; }

void logger_reopen(Logger *l) {
    atomic_store(&l->again, true);
    wake_writer(l);
}

LoggerCounts logger_counts(const Logger *l) {
    return (LoggerCounts){.written = atomic_load(&l->written),
                          .suppressed = atomic_load(&l->suppressed),
                          .dropped = atomic_load(&l->dropped)};
}

// LD_PRELOAD library that makes the n-th call of chosen kinds fail, and counts resources in use.
//
// COTENANT_SHIM names a file of one page, shared with the test: attack/fault.py writes the
// first four words while the program runs, and reads the others.
#undef _FILE_OFFSET_BITS
#undef _FORTIFY_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

typedef enum Kind {
#define X(id, error) KIND_##id,
#include "tests/serve/shim.def"
#undef X
    KINDS
} Kind;

enum { PAGE = 4096, FRAMES = 24, EARLY = 1 << 16 };

typedef struct Page {
    _Atomic uint64_t kinds;                  // a bit for each that is meant
    _Atomic uint64_t at;                     // the call that fails first, from 1 on; 0: none
    _Atomic uint64_t times;                  // as many from there on fail
    _Atomic uint64_t error;                  // 0: as shim.def says; or SHORT, KILL
    _Atomic uint64_t blind;                  // 1: /proc and /sys cannot be opened
    _Atomic uint64_t wall;                   // seconds that the wall clock is ahead
    _Atomic uint64_t seen;                   // calls meant
    _Atomic uint64_t failed;                 // of them
    _Atomic uint64_t blocks, bytes, mapped;  // held now: by malloc and the like, by mmap
    _Atomic uint64_t calls[32];              // of each kind, meant or not
    _Atomic uint64_t frames[FRAMES];         // call stack of the first failed call
} Page;

enum { SHORT = 1 << 20, KILL };  // half of what was asked is done; the program ends there and then

static Page              *page;
static _Thread_local bool inside;
static char               early[EARLY];  // for dlsym, which allocates before malloc is found
static _Atomic size_t     early_used;
static const int          errors[KINDS] = {
#define X(id, error) [KIND_##id] = error,
#include "tests/serve/shim.def"
#undef X
};

typedef void *__attribute__((may_alias)) Any;  // a function, found by its name

static void *find(Any *slot, const char *name) {
    if (*slot == NULL) {
        bool was = inside;
        inside = true;
        *slot = dlsym(RTLD_NEXT, name);
        inside = was;
    }
    return *slot;
}

#define REAL(name)                                                                                 \
    static __typeof__(&name) real;                                                                 \
    (void)find((Any *)&real, #name)

__attribute__((constructor)) static void attach(void) {
    const char *name = getenv("COTENANT_SHIM");
    void       *warm[2];
    (void)backtrace(warm, 2);
    int fd = name != NULL ? open(name, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0) return;
    void *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    (void)close(fd);
    if (p == MAP_FAILED) return;
    page = p;
}

static void remember(void) {
    void *at[FRAMES + 2];
    inside = true;
    int n = backtrace(at, FRAMES + 2);
    inside = false;
    for (int i = 2; i < n; i++) page->frames[i - 2] = (uint64_t)(uintptr_t)at[i];
    if (n - 2 < FRAMES) page->frames[n - 2] = 0;
}

// Whether this call has to fail. errno is set.
static bool due(Kind kind) {
    if (page == NULL || inside) return false;
    page->calls[kind]++;
    if ((page->kinds >> kind & 1) == 0) return false;
    uint64_t n = ++page->seen, at = page->at;
    if (at == 0 || n < at || n - at >= page->times) return false;
    if (page->failed++ == 0) remember();
    if (page->error == KILL) (void)kill(getpid(), SIGKILL);
    errno = page->error != 0 ? (int)page->error : errors[kind];
    return true;
}

static bool hidden(const char *name) {
    if (page == NULL || inside || page->blind == 0) return false;
    errno = EACCES;
    return strncmp(name, "/proc/", 6) == 0 || strncmp(name, "/sys/", 5) == 0;
}

static size_t half(size_t n) { return n > 1 ? n / 2 : n; }

#define PLAIN(kind, bad, name, ...)                                                                \
    REAL(name);                                                                                    \
    if (due(kind)) {                                                                               \
        if (errno != SHORT) return bad;                                                            \
        errno = 0;                                                                                 \
    }                                                                                              \
    return real(__VA_ARGS__)
#define COUNTED(kind, name, n, arguments)                                                          \
    REAL(name);                                                                                    \
    if (due(kind)) {                                                                               \
        if (errno != SHORT) return -1;                                                             \
        n = half(n);                                                                               \
    }                                                                                              \
    return real arguments

static void *keep(void *p) {
    if (p != NULL && page != NULL && !inside) {
        page->blocks++;
        page->bytes += malloc_usable_size(p);
    }
    return p;
}

static bool is_early(const void *p) {
    return (const char *)p >= early && (const char *)p < early + EARLY;
}

static void drop(void *p) {
    if (p == NULL || page == NULL || inside) return;
    page->blocks--;
    page->bytes -= malloc_usable_size(p);
}

static void *take_early(size_t n) {
    size_t at = early_used;
    early_used = at + (n + 15) / 16 * 16;
    return early_used <= EARLY ? early + at : NULL;
}

void *malloc(size_t n) {
    static void *(*real)(size_t);
    if (real == NULL && inside) return take_early(n);
    (void)find((Any *)&real, "malloc");
    return due(KIND_MEMORY) ? NULL : keep(real(n));
}

void *calloc(size_t n, size_t size) {
    static void *(*real)(size_t, size_t);
    if (real == NULL && inside) return take_early(n * size);
    (void)find((Any *)&real, "calloc");
    return due(KIND_MEMORY) ? NULL : keep(real(n, size));
}

void *realloc(void *p, size_t n) {
    REAL(realloc);
    if (is_early(p)) return NULL;
    if (due(KIND_MEMORY)) return NULL;
    size_t old = p != NULL ? malloc_usable_size(p) : 0;
    void  *q = real(p, n);
    if (page != NULL && !inside && (q != NULL || n == 0)) {
        page->bytes -= old;
        page->blocks -= p != NULL;
        (void)keep(q);
    }
    return q;
}

void *aligned_alloc(size_t align, size_t n) {
    REAL(aligned_alloc);
    return due(KIND_MEMORY) ? NULL : keep(real(align, n));
}

int posix_memalign(void **out, size_t align, size_t n) {
    REAL(posix_memalign);
    if (due(KIND_MEMORY)) return ENOMEM;
    int e = real(out, align, n);
    if (e == 0) (void)keep(*out);
    return e;
}

void free(void *p) {
    REAL(free);
    if (is_early(p)) return;
    drop(p);
    real(p);
}

static void *mapped(void *p, size_t n) {
    if (p != MAP_FAILED && page != NULL) page->mapped += n;
    return p;
}

void *mmap(void *at, size_t n, int prot, int flags, int fd, off_t from) {
    REAL(mmap);
    return due(KIND_MAP) ? MAP_FAILED : mapped(real(at, n, prot, flags, fd, from), n);
}

void *mmap64(void *at, size_t n, int prot, int flags, int fd, off64_t from) {
    REAL(mmap64);
    return due(KIND_MAP) ? MAP_FAILED : mapped(real(at, n, prot, flags, fd, from), n);
}

void *mremap(void *old, size_t old_n, size_t n, int flags, ...) {
    REAL(mremap);
    if (due(KIND_MAP)) return MAP_FAILED;
    void *p = real(old, old_n, n, flags);
    if (p != MAP_FAILED && page != NULL) page->mapped += n - old_n;
    return p;
}

int munmap(void *p, size_t n) {
    REAL(munmap);
    if (due(KIND_UNMAP)) return -1;
    if (page != NULL) page->mapped -= n;
    return real(p, n);
}

int madvise(void *p, size_t n, int advice) { PLAIN(KIND_UNMAP, -1, madvise, p, n, advice); }

#define MODE(flags)                                                                                \
    mode_t mode = 0;                                                                               \
    if (((flags) & (O_CREAT | O_TMPFILE)) != 0) {                                                  \
        va_list list;                                                                              \
        va_start(list, flags);                                                                     \
        mode = va_arg(list, mode_t);                                                               \
        va_end(list);                                                                              \
    }
int open(const char *name, int flags, ...) {
    MODE(flags)
    if (hidden(name)) return -1;
    PLAIN(KIND_OPEN, -1, open, name, flags, mode);
}
int open64(const char *name, int flags, ...) {
    MODE(flags)
    if (hidden(name)) return -1;
    PLAIN(KIND_OPEN, -1, open64, name, flags, mode);
}
int openat(int dir, const char *name, int flags, ...) {
    MODE(flags)
    if (hidden(name)) return -1;
    PLAIN(KIND_OPEN, -1, openat, dir, name, flags, mode);
}
int openat64(int dir, const char *name, int flags, ...) {
    MODE(flags)
    if (hidden(name)) return -1;
    PLAIN(KIND_OPEN, -1, openat64, dir, name, flags, mode);
}
int __open_2(const char *name, int flags);
int __open64_2(const char *name, int flags);
int __openat_2(int dir, const char *name, int flags);
int __openat64_2(int dir, const char *name, int flags);
int __open_2(const char *name, int flags) { return open(name, flags); }
int __open64_2(const char *name, int flags) { return open64(name, flags); }
int __openat_2(int dir, const char *name, int flags) { return openat(dir, name, flags); }
int __openat64_2(int dir, const char *name, int flags) { return openat64(dir, name, flags); }

FILE *fopen(const char *name, const char *mode) {
    if (hidden(name)) return NULL;
    PLAIN(KIND_OPEN, NULL, fopen, name, mode);
}
FILE *fopen64(const char *name, const char *mode) {
    if (hidden(name)) return NULL;
    PLAIN(KIND_OPEN, NULL, fopen64, name, mode);
}
FILE *fdopen(int fd, const char *mode) { PLAIN(KIND_OPEN, NULL, fdopen, fd, mode); }
FILE *open_memstream(char **p, size_t *n) { PLAIN(KIND_MEMORY, NULL, open_memstream, p, n); }
DIR  *opendir(const char *name) { PLAIN(KIND_OPEN, NULL, opendir, name); }
DIR  *fdopendir(int fd) { PLAIN(KIND_OPEN, NULL, fdopendir, fd); }
int   dup(int fd) { PLAIN(KIND_OPEN, -1, dup, fd); }

// openat2, and nothing else, comes this way.
long syscall(long number, ...) {
    long    a[6];
    va_list list;
    REAL(syscall);
    va_start(list, number);
    for (int i = 0; i < 6; i++) a[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_openat2 && due(KIND_OPEN)) return -1;
    return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

ssize_t read(int fd, void *p, size_t n) { COUNTED(KIND_READ, read, n, (fd, p, n)); }
ssize_t pread(int fd, void *p, size_t n, off_t at) { COUNTED(KIND_READ, pread, n, (fd, p, n, at)); }
ssize_t pread64(int fd, void *p, size_t n, off64_t at) {
    COUNTED(KIND_READ, pread64, n, (fd, p, n, at));
}
char  *fgets(char *p, int n, FILE *f) { PLAIN(KIND_READ, NULL, fgets, p, n, f); }
size_t fread(void *p, size_t size, size_t n, FILE *f) { PLAIN(KIND_READ, 0, fread, p, size, n, f); }
struct dirent *readdir(DIR *d) {
    PLAIN(KIND_READ, NULL, readdir, d);
}
struct dirent64 *readdir64(DIR *d) {
    PLAIN(KIND_READ, NULL, readdir64, d);
}

static _Atomic uint64_t bells;  // descriptors below 64 that threads are woken by

static Kind written(int fd) {
    return fd >= 0 && fd < 64 && (bells >> fd & 1) != 0 ? KIND_WAKE : KIND_WRITE;
}

ssize_t write(int fd, const void *p, size_t n) { COUNTED(written(fd), write, n, (fd, p, n)); }
ssize_t pwrite(int fd, const void *p, size_t n, off_t at) {
    COUNTED(KIND_WRITE, pwrite, n, (fd, p, n, at));
}
ssize_t pwrite64(int fd, const void *p, size_t n, off64_t at) {
    COUNTED(KIND_WRITE, pwrite64, n, (fd, p, n, at));
}
int ftruncate(int fd, off_t n) { PLAIN(KIND_WRITE, -1, ftruncate, fd, n); }
int ftruncate64(int fd, off64_t n) { PLAIN(KIND_WRITE, -1, ftruncate64, fd, n); }
int fflush(FILE *f) { PLAIN(KIND_WRITE, EOF, fflush, f); }

int fclose(FILE *f) {
    REAL(fclose);
    bool bad = due(KIND_WRITE);
    int  e = errno, code = real(f);
    if (!bad) return code;
    errno = e;
    return EOF;
}

ssize_t send(int fd, const void *p, size_t n, int flags) {
    COUNTED(KIND_SEND, send, n, (fd, p, n, flags));
}
ssize_t sendto(int fd, const void *p, size_t n, int flags, __CONST_SOCKADDR_ARG to, socklen_t len) {
    COUNTED(KIND_SEND, sendto, n, (fd, p, n, flags, to, len));
}

// Short: half of its first part, alone.
ssize_t sendmsg(int fd, const struct msghdr *m, int flags) {
    REAL(sendmsg);
    if (!due(KIND_SEND)) return real(fd, m, flags);
    if (errno != SHORT || m->msg_iovlen == 0) return -1;
    return send(fd, m->msg_iov[0].iov_base, half(m->msg_iov[0].iov_len), flags);
}

ssize_t recv(int fd, void *p, size_t n, int flags) {
    COUNTED(KIND_RECEIVE, recv, n, (fd, p, n, flags));
}

int fsync(int fd) { PLAIN(KIND_SYNC, -1, fsync, fd); }
int fdatasync(int fd) { PLAIN(KIND_SYNC, -1, fdatasync, fd); }
int rename(const char *old, const char *new) { PLAIN(KIND_NAME, -1, rename, old, new); }
int unlink(const char *name) { PLAIN(KIND_NAME, -1, unlink, name); }
int mkdir(const char *name, mode_t mode) { PLAIN(KIND_NAME, -1, mkdir, name, mode); }
int fchmod(int fd, mode_t mode) { PLAIN(KIND_NAME, -1, fchmod, fd, mode); }
int access(const char *name, int mode) { PLAIN(KIND_STAT, -1, access, name, mode); }
int stat(const char *name, struct stat *s) { PLAIN(KIND_STAT, -1, stat, name, s); }
int stat64(const char *name, struct stat64 *s) { PLAIN(KIND_STAT, -1, stat64, name, s); }
int lstat(const char *name, struct stat *s) { PLAIN(KIND_STAT, -1, lstat, name, s); }
int lstat64(const char *name, struct stat64 *s) { PLAIN(KIND_STAT, -1, lstat64, name, s); }
int fstat(int fd, struct stat *s) { PLAIN(KIND_STAT, -1, fstat, fd, s); }
int fstat64(int fd, struct stat64 *s) { PLAIN(KIND_STAT, -1, fstat64, fd, s); }
int fstatat(int dir, const char *name, struct stat *s, int flags) {
    PLAIN(KIND_STAT, -1, fstatat, dir, name, s, flags);
}
int fstatat64(int dir, const char *name, struct stat64 *s, int flags) {
    PLAIN(KIND_STAT, -1, fstatat64, dir, name, s, flags);
}

int accept4(int fd, __SOCKADDR_ARG from, socklen_t *len, int flags) {
    PLAIN(KIND_ACCEPT, -1, accept4, fd, from, len, flags);
}
int socket(int family, int type, int protocol) {
    PLAIN(KIND_SOCKET, -1, socket, family, type, protocol);
}
int bind(int fd, __CONST_SOCKADDR_ARG at, socklen_t len) {
    PLAIN(KIND_SOCKET, -1, bind, fd, at, len);
}
int listen(int fd, int n) { PLAIN(KIND_SOCKET, -1, listen, fd, n); }
int setsockopt(int fd, int level, int name, const void *value, socklen_t len) {
    PLAIN(KIND_SOCKET, -1, setsockopt, fd, level, name, value, len);
}
int getsockname(int fd, __SOCKADDR_ARG at, socklen_t *len) {
    PLAIN(KIND_SOCKET, -1, getsockname, fd, at, len);
}
int eventfd(unsigned n, int flags) {
    REAL(eventfd);
    if (due(KIND_SOCKET)) return -1;
    int fd = real(n, flags);
    if (fd >= 0 && fd < 64) bells |= UINT64_C(1) << fd;
    return fd;
}
int signalfd(int fd, const sigset_t *set, int flags) {
    PLAIN(KIND_SOCKET, -1, signalfd, fd, set, flags);
}
int epoll_create1(int flags) { PLAIN(KIND_WATCH, -1, epoll_create1, flags); }
int epoll_ctl(int fd, int what, int other, struct epoll_event *e) {
    PLAIN(KIND_WATCH, -1, epoll_ctl, fd, what, other, e);
}
int epoll_wait(int fd, struct epoll_event *e, int n, int ms) {
    PLAIN(KIND_WAIT, -1, epoll_wait, fd, e, n, ms);
}
int epoll_pwait2(int fd, struct epoll_event *e, int n, const struct timespec *t,
                 const sigset_t *set) {
    PLAIN(KIND_WAIT, -1, epoll_pwait2, fd, e, n, t, set);
}

int pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*run)(void *), void *arg) {
    REAL(pthread_create);
    return due(KIND_THREAD) ? errno : real(t, a, run, arg);
}
int sched_setaffinity(pid_t pid, size_t n, const cpu_set_t *set) {
    PLAIN(KIND_AFFINITY, -1, sched_setaffinity, pid, n, set);
}
int pthread_setaffinity_np(pthread_t t, size_t n, const cpu_set_t *set) {
    REAL(pthread_setaffinity_np);
    return due(KIND_AFFINITY) ? errno : real(t, n, set);
}

int clock_gettime(clockid_t clock, struct timespec *t) {
    REAL(clock_gettime);
    int e = real(clock, t);
    if (e == 0 && clock == CLOCK_REALTIME && page != NULL) t->tv_sec += (time_t)page->wall;
    return e;
}

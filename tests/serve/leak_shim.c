// LD_PRELOAD library with a deliberate leak: a copy of data that begins with COTENANT_LEAK_MARK
// goes wrong as COTENANT_LEAK says, so that tests can show that a search for leaks finds one.
#undef _FORTIFY_SOURCE
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum { MARK = 8, LEAST = 64, PLACES = 4 };

static const char *fault = "", *mark;

__attribute__((constructor)) static void attach(void) {
    const char *m = getenv("COTENANT_LEAK_MARK"), *f = getenv("COTENANT_LEAK");
    if (m != NULL && f != NULL && strlen(m) == MARK) {
        fault = f;
        mark = m;
    }
}

static _Atomic uint64_t   n_places;
static _Atomic(uintptr_t) places[PLACES];  // where marked data was copied to

// Reads what is there by now, if there is memory.
static void read_again(void *to, uintptr_t from, size_t n) {
    struct iovec a = {to, n}, b = {(void *)from, n};
    (void)process_vm_readv(getpid(), &a, 1, &b, 1, 0);
}

static void end_with_address(unsigned char *end, uintptr_t at) {
    for (size_t i = 0; i < sizeof at; i++) end[i - sizeof at] = (unsigned char)(at >> 8 * i);
}

// short: the second half stays as it was. stale: it is what is now where an earlier copy went.
// address: the last 8 bytes are a pointer.
static void *copy(void *to, const void *from, size_t n) {
    if (n < LEAST || mark == NULL || memcmp(from, mark, MARK) != 0) return memmove(to, from, n);
    size_t    half = strcmp(fault, "short") == 0 || strcmp(fault, "stale") == 0 ? n / 2 : n;
    uintptr_t before = places[n_places++ % PLACES];
    (void)memmove(to, from, half);
    if (strcmp(fault, "stale") == 0) read_again((char *)to + half, before, n - half);
    if (strcmp(fault, "address") == 0) end_with_address((unsigned char *)to + n, (uintptr_t)to);
    places[(n_places - 1) % PLACES] = (uintptr_t)to;
    return to;
}

void *memcpy(void *to, const void *from, size_t n) { return copy(to, from, n); }

void *__memcpy_chk(void *to, const void *from, size_t n, size_t room);
void *__memcpy_chk(void *to, const void *from, size_t n, size_t room) {
    if (n > room) abort();
    return copy(to, from, n);
}

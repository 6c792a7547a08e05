// A folder with a profile store, and profiles to put into it.
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <ftw.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "compile/profile_store.h"
#include "tests/base/cpu_grid.h"
#include "tests/runner.h"

#define STORE static __attribute__((unused))

static char  root[64];
static char *path;
static Arena arena;
static Cpu   cpu;

STORE int setup(void **state) {
    (void)state;
    (void)snprintf(root, sizeof root, "/tmp/store_test.XXXXXX");
    if (mkdtemp(root) == NULL || chmod(root, 0755) != 0) return -1;
    if (arena_init(&arena, 1 << 26) != ERR_OK) return -1;
    path = arena_printf(&arena, "%s/p.db", root);
    cpu = cpu_grid(&arena, (CpuGrid){1, 0, 2, 1});
    return 0;
}

STORE int remove_one(const char *name, const struct stat *st, int flag, struct FTW *ftw) {
    (void)st, (void)flag, (void)ftw;
    return remove(name);
}

STORE int teardown(void **state) {
    (void)state;
    arena_finish(&arena);
    return nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

STORE Candidate candidate(uint32_t i) {
    return (Candidate){
        .version = {.algo = (uint8_t)(i % ALGO_COUNT), .tile_rows = 6, .depth = (uint16_t)i},
        .tasks = 100 * i,
        .traffic = {.l3_bytes = (size_t)i << 33, .beyond_l2_bytes = i},
        .time_ns = {1000000 + i, INT64_C(1) << 40},
    };
}

STORE LayerProfile profile(uint32_t n) {
    LayerProfile p = {.n_counts = 2, .counts = {1, 2}, .n_kept = 2, .kept = {n - 1, 0}, .n = n};
    p.spent_ns = INT64_C(123456789012);
    p.finished = n % 2 == 0;
    p.candidates = arena_new(&arena, Candidate, n);
    for (uint32_t i = 0; i < n; i++) p.candidates[i] = candidate(i);
    return p;
}

STORE bool same(const LayerProfile *a, const LayerProfile *b) {
    bool ok = a->n == b->n && a->n_counts == b->n_counts && a->n_kept == b->n_kept &&
              a->spent_ns == b->spent_ns && a->finished == b->finished &&
              memcmp(a->counts, b->counts, sizeof a->counts) == 0 &&
              memcmp(a->kept, b->kept, sizeof a->kept) == 0;
    for (uint32_t i = 0; ok && i < a->n; i++) {
        const Candidate *x = &a->candidates[i], *y = &b->candidates[i];
        ok = version_same(&x->version, &y->version) && x->tasks == y->tasks &&
             x->traffic.l3_bytes == y->traffic.l3_bytes &&
             x->traffic.beyond_l2_bytes == y->traffic.beyond_l2_bytes &&
             memcmp(x->time_ns, y->time_ns, sizeof x->time_ns) == 0;
    }
    return ok;
}

STORE int wait_for(pid_t pid) {
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

STORE const char *bytes_of(const char *name, size_t *len) {
    char *bytes = NULL;
    assert_int_equal(file_read(name, 1 << 24, &arena, &bytes, len), ERR_OK);
    return bytes;
}

STORE void write_bytes(const char *bytes, size_t len) {
    assert_int_equal(file_replace(path, bytes, len), ERR_OK);
}

STORE void make_store(uint32_t records) {
    ProfileStore s;
    LayerProfile p = profile(40);
    profile_store_open(&s, path, &cpu, &isa_baseline);
    for (uint32_t i = 0; i < records; i++)
        assert_true(profile_store_put(&s, arena_printf(&arena, "layer %u", i), &p));
    profile_store_close(&s);
}

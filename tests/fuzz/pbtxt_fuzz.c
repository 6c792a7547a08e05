// Feeds text to the reader of config.pbtxt; what it accepts is complete, and accepted again.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/utf8.h"
#include "serve/models/pbtxt.h"
#include "tests/fuzz/fuzz.h"

static void inspect_tensors(const PbtxtTensor *t, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        CHECK(utf8_ok(t[i].name, strlen(t[i].name)));
        CHECK(t[i].rank >= RANK_UNKNOWN && t[i].rank <= TENSOR_MAX_RANK && t[i].line > 0);
        for (int32_t d = 0; d < t[i].rank; d++) CHECK(t[i].dims[d] == -1 || t[i].dims[d] > 0);
    }
}

static void inspect(const Pbtxt *p) {
    CHECK(p->name != NULL && p->platform != NULL && p->backend != NULL);
    CHECK(strchr(p->filename, '/') == NULL && p->max_batch_size >= 0);
    inspect_tensors(p->inputs, p->n_inputs);
    inspect_tensors(p->outputs, p->n_outputs);
    for (uint32_t i = 0; i < p->n_versions; i++) CHECK(p->versions[i] > 0);
    for (uint32_t i = 0; i < p->n_sets; i++)
        CHECK(p->sets[i].key[0] != '\0' && p->sets[i].value != NULL && p->sets[i].line > 0);
    for (uint32_t i = 0; i < p->n_warnings; i++) CHECK(strncmp(p->warnings[i], "fuzz:", 5) == 0);
}

FUZZ_TARGET(data, size) {
    Arena a;
    Pbtxt p = {0}, strict = {0};
    if (arena_init(&a, (size_t)1 << 24) != ERR_OK) abort();
    Err e = pbtxt_parse("fuzz", (const char *)data, size, false, &a, &p);
    if (e == ERR_OK)
        inspect(&p);
    else
        CHECK(strncmp(err_why(), "fuzz:", 5) == 0);
    if (pbtxt_parse("fuzz", (const char *)data, size, true, &a, &strict) == ERR_OK)
        CHECK(e == ERR_OK && strict.n_sets == p.n_sets);
    arena_finish(&a);
    return 0;
}

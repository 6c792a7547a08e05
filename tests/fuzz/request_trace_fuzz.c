// Feeds text to the reader of request traces; what it accepts keeps its promises, and writing it
// gives it back.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chip/request_trace.h"
#include "tests/fuzz/fuzz.h"

static void promise(int kept) {
    if (!kept) abort();
}

static void check(const RequestTrace *t) {
    promise(t->n > 0 && t->n_tenants > 0 && t->n_tenants <= CHIP_TENANTS);
    for (uint32_t i = 0; i < t->n; i++) {
        promise(t->at[i].tenant < t->n_tenants && t->at[i].at >= 0 && t->at[i].due >= 0);
        promise(i == 0 || t->at[i].at >= t->at[i - 1].at);
    }
}

// Deadlines by a rule become explicit.
static void round_trip(const RequestTrace *t, Arena *a) {
    ChipTenant   tenants[CHIP_TENANTS] = {0};
    const char  *networks[CHIP_TENANTS];
    char        *text = NULL;
    size_t       len = 0;
    RequestTrace again;
    ChipRequest *at = arena_new(a, ChipRequest, t->n);
    for (uint32_t i = 0; i < t->n_tenants; i++) {
        tenants[i].name = t->tenants[i].name;
        networks[i] = t->tenants[i].network;
    }
    for (uint32_t i = 0; i < t->n; i++)
        at[i] = (ChipRequest){.arrival = t->at[i].at,
                              .deadline = t->at[i].at + (t->at[i].due > 0 ? t->at[i].due : 1),
                              .tenant = t->at[i].tenant};
    FILE *f = open_memstream(&text, &len);
    promise(f != NULL);
    request_trace_put(f, tenants, networks, at, t->n);
    promise(fclose(f) == 0);
    promise(request_trace_parse("again", text, len, a, &again) == ERR_OK && again.n == t->n);
    for (uint32_t i = 0; i < t->n; i++) {
        promise(again.at[i].at == at[i].arrival && again.at[i].tenant == at[i].tenant);
        promise(again.at[i].due == at[i].deadline - at[i].arrival);
    }
    free(text);
}

FUZZ_TARGET(data, size) {
    Arena        a;
    RequestTrace t;
    if (arena_init(&a, (size_t)1 << 28) != ERR_OK) abort();
    char *text = arena_alloc(&a, size + 1, 1, 1);
    if (size > 0) memcpy(text, data, size);
    if (request_trace_parse("fuzz", text, size, &a, &t) == ERR_OK) {
        check(&t);
        round_trip(&t, &a);
    }
    arena_finish(&a);
    return 0;
}

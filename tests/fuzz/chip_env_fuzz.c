// Feeds lines to `chip env`: whatever a client writes, the run goes on or ends with the input, and
// the engine, which aborts on an illegal action, does not see one.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eval/chip_env.h"
#include "tests/fuzz/fuzz.h"

enum { REQUESTS = 20 };

typedef struct Input {
    const uint8_t *at;
    size_t         left;
} Input;

static size_t take(void *self, char *to, size_t size) {
    Input *in = self;
    size_t n = in->left < size ? in->left : size;
    n = n < 97 ? n : 97;  // lines come in parts
    if (n > 0) memcpy(to, in->at, n);
    in->at += n;
    in->left -= n;
    return n;
}

static const ChipScenario *scenario(void) {
    static ChipScenario s;
    static Arena        a;
    static bool         open;
    ChipScenarioOptions o = {.package = "2+2", .workload = "squeezenet1_1+mobilenet_v1"};
    if (!open &&
        (arena_init(&a, (size_t)1 << 26) != ERR_OK || chip_scenario_open(&o, &a, &s) != ERR_OK))
        abort();
    open = true;
    return &s;
}

static Err check(void *self, const ChipRun *run, const ChipTraffic *t, const RecordList *records) {
    (void)self;
    if (run->trace.n != t->requests || t->requests > REQUESTS || records->n < 2 * t->requests)
        abort();
    return ERR_OK;
}

FUZZ_TARGET(data, size) {
    Arena   a;
    char   *text = NULL;
    size_t  len = 0;
    Input   in = {data, size};
    FILE   *out = open_memstream(&text, &len);
    ChipEnv env = {.scenario = scenario(),
                   .traffic = {.load = 0.9, .requests = REQUESTS, .seed = 1},
                   .requests_most = REQUESTS,
                   .read = take,
                   .reader = &in,
                   .out = out,
                   .keep = check};
    if (out == NULL || arena_init(&a, (size_t)1 << 26) != ERR_OK) abort();
    if (chip_env_run(&env, &a) != ERR_OK) abort();
    arena_finish(&a);
    if (fclose(out) != 0 || len == 0 || text[len - 1] != '\n') abort();
    free(text);
    return 0;
}

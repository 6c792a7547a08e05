// cotenant node compare: the highest rate that each policy serves in time, by mix.
#include <string.h>

#include "base/parallel_for.h"
#include "cli/commands.h"
#include "cli/compare_args.h"
#include "eval/node_compare.h"

enum { MIXES_MAX = 8, OWN_ROWS = 11 };
enum { FIRST_SEED = 101 };  // settings of policies were chosen on lower ones

typedef struct Options {
    CompareArgs       common;
    const char       *mix;
    ArgList           sets;
    int64_t           seeds, seed, requests;
    bool              live;
    NodeCompareParams params;
} Options;

static Err read_mixes(const Options *o, Arena *a, NodeCompareParams *p) {
    Mix known;
    p->mixes = arena_new(a, const char *, MIXES_MAX);
    p->mixes[p->n_mixes++] = o->mix;
    if (strcmp(o->mix, "all") == 0)
        for (p->n_mixes = 0; mix_name(p->n_mixes) != NULL && p->n_mixes < MIXES_MAX; p->n_mixes++)
            p->mixes[p->n_mixes] = mix_name(p->n_mixes);
    for (uint32_t i = 0; i < p->n_mixes; i++) TRY(mix_find(p->mixes[i], MIX_SERVER, &known));
    return ERR_OK;
}

static Err compare(const void *options, Arena *a) {
    const Options    *o = options;
    NodeCompareParams p = o->params;
    PolicyChoices     c;
    Progress          bar;
    Comparison        out = {0};
    if (o->live) p.scenario.machine = NULL;
    p.common.seeds = (uint32_t)o->seeds;
    p.common.first_seed = (uint64_t)o->seed;
    p.common.threads = parallel_threads(o->common.threads);
    p.requests = (uint32_t)o->requests;
    TRY(read_mixes(o, a, &p));
    TRY(policy_choices_read(TIER_NODE, o->common.policies, &o->sets, a, &c));
    p.common.progress = compare_args_progress(&bar, node_compare_steps(&p, c.n));
    Err e = node_compare(&p, &c, a, &out);
    if (p.common.progress != NULL) progress_end(&bar);
    return e == ERR_OK ? compare_args_write(&o->common, &out, "Policies on a shared node", a) : e;
}

int cmd_node_compare(const Command *c, int argc, char **argv) {
    Options o = {.mix = "light",
                 .seeds = 5,
                 .seed = FIRST_SEED,
                 .params = {.common = {.subject = "planaria"},
                            .scenario = {.machine = "server64"},
                            .target = 0.95,
                            .calm = 0.8,
                            .equal_share = {0.8, 1},
                            .tolerance = 0.02}};
    ArgRow  rows[OWN_ROWS + COMPARE_ARG_ROWS] = {
         {"live", ARG_FLAG, &o.live, NULL, "on this machine, in real time", 0, 0},
         {"machine", ARG_TEXT, &o.params.scenario.machine, "NAME",
          "a simulated machine or a YAML file (default server64)", 0, 0},
         {"mix", ARG_TEXT, &o.mix, "NAME", "light, medium, heavy, mix or all (default light)", 0, 0},
         {"baseline", ARG_TEXT, &o.params.common.subject, "NAME",
          "policy that the others are compared with (default planaria, or the first)", 0, 0},
         {"set", ARG_LIST, &o.sets, "POLICY.KEY=VALUE", "a setting of a policy", 0, 0},
         {"seeds", ARG_INT, &o.seeds, "N", "number of seeds (default 5)", 1, COMPARISON_SEEDS},
         {"seed", ARG_INT, &o.seed, "S", "first seed (default 101)", 1, INT32_MAX},
         {"requests", ARG_INT, &o.requests, "N",
          "requests per run (default 2000; live: those of 5 seconds)", 20, 100000000},
         {"slack", ARG_REAL, &o.params.scenario.slack, "K",
          "deadline: K times the latency alone on all cores", 0, 1000000},
         {"store", ARG_TEXT, &o.params.scenario.store, "FILE", "profile store, live", 0, 0},
         {"trace", ARG_TEXT, &o.params.trace, "FILE",
          "a run of the best policy as a trace for ui.perfetto.dev", 0, 0},
    };
    compare_args_rows(&o.common, "such as fcfs,slack (default all)", rows + OWN_ROWS);
    int code = args_parse(c, rows, sizeof rows / sizeof *rows, argc, argv, NULL, 0, 0, NULL);
    return code >= 0 ? code : command_run(compare, &o);
}

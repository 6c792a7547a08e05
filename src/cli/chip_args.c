#include "cli/chip_args.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

void chip_args_rows(ChipArgs *x, ArgRow rows[CHIP_ARG_ROWS]) {
    const ArgRow all[CHIP_ARG_ROWS] = {
        {"chip", ARG_TEXT, &x->chip, "NAME", "a package or a YAML file (default 4+4)", 0, 0},
        {"ts", ARG_REAL, &x->ts, "US", "planning period T_s (default: the package's)", 0, 1000000},
        {"slack", ARG_REAL, &x->slack, "K", "deadline: K x service level x best case (default 4)",
         0, 1000000},
        {"deadlines", ARG_TEXT, &x->deadlines, "RULE", "moca, planaria or mlperf (default moca)", 0,
         0},
        {"sharing", ARG_TEXT, &x->sharing, "RULE",
         "sharing of memory bandwidth: equal or maxmin (default equal)", 0, 0},
        {"burst", ARG_REAL, &x->burst, "K", "bursty arrivals, with K times the rate in bursts", 0,
         1000},
        {"firm", ARG_FLAG, &x->firm, NULL, "drop requests at their deadlines", 0, 0},
        {"target", ARG_REAL, &x->target, "R",
         "share of requests in time that every tenant should have", 0, 1},
        {"requests", ARG_INT, &x->requests, "N", "requests per run (default 1000)", 1, 100000000},
        {"table", ARG_TEXT, &x->table, "FILE", "costs of layers from CSV, not from the cost model",
         0, 0},
        {"table-fill", ARG_FLAG, &x->table_fill, NULL,
         "layers without a row cost what the cost model says", 0, 0},
        {"set", ARG_LIST, &x->sets, "POLICY.KEY=VALUE", "a setting of a policy", 0, 0},
    };
    memcpy(rows, all, sizeof all);
}

static Err find(const char *option, const char *name, const char *const *names, uint32_t n,
                uint32_t *out) {
    char   known[128] = "";
    size_t len = 0;
    if (name == NULL) return ERR_OK;
    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(names[i], name) == 0) {
            *out = i;
            return ERR_OK;
        }
        len +=
            (size_t)snprintf(known + len, sizeof known - len, "%s%s", i > 0 ? ", " : "", names[i]);
    }
    char hint[TEXT_MEANT], list[160];
    (void)snprintf(list, sizeof list, "there are %s", known);
    return err_set(ERR_ARG, "--%s %s: %s", option, name, text_meant(name, names, n, list, hint));
}

Err chip_args_scenario(const ChipArgs *x, const char *mix, double bandwidth,
                       ChipScenarioOptions *out) {
    static const char *const deadlines[] = {"moca", "planaria", "mlperf"};
    static const char *const sharing[] = {"equal", "maxmin"};
    uint32_t                 rule = CHIP_DEADLINES_MOCA, share = CHIP_EQUAL;
    TRY(find("deadlines", x->deadlines, deadlines, 3, &rule));
    TRY(find("sharing", x->sharing, sharing, 2, &share));
    *out = (ChipScenarioOptions){.package = x->chip != NULL ? x->chip : CHIP_SCENARIO_PACKAGE,
                                 .workload = mix,
                                 .bandwidth = bandwidth,
                                 .period_us = x->ts,
                                 .slack = x->slack,
                                 .target = x->target,
                                 .deadlines = (ChipDeadlines)rule,
                                 .sharing = (ChipSharing)share,
                                 .firm = x->firm,
                                 .table = x->table,
                                 .table_fill = x->table_fill};
    return ERR_OK;
}

Err chip_args_trace(const char *path, Arena *a, ChipScenarioOptions *out) {
    RequestTrace *t = arena_new(a, RequestTrace, 1);
    if (path == NULL) return ERR_OK;
    out->trace = t;
    return request_trace_load(path, a, t);
}

ChipTraffic chip_args_traffic(const ChipArgs *x, double load, uint64_t seed) {
    return (ChipTraffic){.load = load,
                         .burst = x->burst,
                         .requests =
                             x->requests > 0 ? (uint32_t)x->requests : CHIP_SCENARIO_REQUESTS,
                         .seed = seed};
}

// cotenant chip compare: policies on packages of accelerators, cell by cell.
#include "base/parallel_for.h"
#include "cli/chip_args.h"
#include "cli/commands.h"
#include "cli/compare_args.h"
#include "eval/chip_compare.h"

enum { FIRST_SEED = 101 };  // settings of policies were chosen on lower ones
enum { OWN_ROWS = 10, REQUESTS = 200 };

typedef struct Options {
    CompareArgs common;
    ChipArgs    chip;
    const char *mix, *load, *bandwidth, *subject, *trace, *from;
    int64_t     traces, seed;
    bool        timed, sweep;
} Options;

static Err read_params(const Options *o, Arena *a, ChipCompareParams *p) {
    static const double own = 0;
    const char         *chips = o->chip.chip != NULL ? o->chip.chip : CHIP_SCENARIO_PACKAGE;
    *p = (ChipCompareParams){.common = {.subject = o->subject,
                                        .seeds = (uint32_t)o->traces,
                                        .first_seed = (uint64_t)o->seed,
                                        .threads = parallel_threads(o->common.threads),
                                        .timed = o->timed},
                             .bandwidths = &own,
                             .n_bandwidths = 1,
                             .burst = o->chip.burst,
                             .requests = (uint32_t)o->chip.requests};
    TRY(option_list_words("chip", chips, a, &p->chips, &p->n_chips));
    TRY(option_list_words("mix", o->mix, a, &p->mixes, &p->n_mixes));
    TRY(option_list_numbers("load", o->load, 0.001, 1000, a, &p->loads, &p->n_loads));
    if (o->bandwidth != NULL)
        TRY(option_list_numbers("bandwidth", o->bandwidth, 0.001, 1e6, a, &p->bandwidths,
                                &p->n_bandwidths));
    TRY(chip_args_scenario(&o->chip, NULL, 0, &p->scenario));
    TRY(chip_args_trace(o->from, a, &p->scenario));
    if (o->from == NULL) return ERR_OK;
    p->common.seeds = p->n_mixes = p->n_loads = 1;
    p->requests = p->scenario.trace->n;
    return ERR_OK;
}

static Err compare(const void *options, Arena *a) {
    const Options    *o = options;
    ChipCompareParams p;
    PolicyChoices     c;
    PolicyInfo        subject;
    Progress          bar;
    Comparison        out = {0};
    TRY(read_params(o, a, &p));
    TRY(policy_choices_read(TIER_CHIP, o->common.policies, &o->chip.sets, a, &c));
    if (!policy_info_find(TIER_CHIP, o->subject, &subject))
        return err_set(ERR_ARG, "--subject %s: there is no such policy; see 'chip policies'",
                       o->subject);
    const PolicyChoice *of = o->sweep || o->common.page != NULL ? chip_sweep_policy(&c) : NULL;
    if (o->sweep && of == NULL)
        return err_set(ERR_ARG, "--sweep: no policy that takes part has a network");
    p.common.progress = compare_args_progress(&bar, chip_compare_runs(&p, c.n) +
                                                        (of != NULL ? chip_sweep_runs(&p) : 0));
    Err e = chip_compare(&p, &c, a, &out);
    if (e == ERR_OK && of != NULL) e = chip_sweep(&p, of, a, &out);
    if (p.common.progress != NULL) progress_end(&bar);
    if (e == ERR_OK && o->trace != NULL) e = chip_compare_trace(&p, &c, o->trace, a);
    if (e != ERR_OK) return e;
    return compare_args_write(&o->common, &out, "Policies on packages of unlike accelerators", a);
}

int cmd_chip_compare(const Command *c, int argc, char **argv) {
    Options o = {.chip = {.requests = REQUESTS},
                 .mix = "light,heavy,mixed",
                 .load = "0.6,1.0",
                 .subject = "relmas",
                 .traces = 20,
                 .seed = FIRST_SEED};
    ArgRow  rows[OWN_ROWS + COMPARE_ARG_ROWS + CHIP_ARG_ROWS] = {
         {"mix", ARG_TEXT, &o.mix, "LIST",
          "light, heavy, mixed, or networks joined by + (default: those three)", 0, 0},
         {"load", ARG_TEXT, &o.load, "LIST",
          "offered load; 1: what the package can just answer (default 0.6,1.0)", 0, 0},
         {"bandwidth", ARG_TEXT, &o.bandwidth, "LIST",
          "memory bandwidth in bytes per cycle (default: the package's)", 0, 0},
         {"subject", ARG_TEXT, &o.subject, "NAME",
          "policy to compare with the best of the others (default relmas)", 0, 0},
         {"traces", ARG_INT, &o.traces, "N", "seeds of each cell (default 20)", 1, COMPARISON_SEEDS},
         {"seed", ARG_INT, &o.seed, "S", "first seed (default 101)", 0, INT32_MAX},
         {"measure", ARG_FLAG, &o.timed, NULL, "also time decisions on this machine", 0, 0},
         {"sweep", ARG_FLAG, &o.sweep, NULL, "energy of the policy by hidden size and T_s", 0, 0},
         {"requests-from", ARG_TEXT, &o.from, "FILE",
          "requests as CSV, in place of mix, load and traces: time_ms, network, deadline_ms, "
           "tenant",
          0, 0},
         {"trace", ARG_TEXT, &o.trace, "FILE",
          "the subject's first run as a trace for ui.perfetto.dev", 0, 0},
    };
    compare_args_rows(&o.common, "such as edf,relmas,oracle (default all)", rows + OWN_ROWS);
    chip_args_rows(&o.chip, rows + OWN_ROWS + COMPARE_ARG_ROWS);
    for (ArgRow *row = rows; row < rows + sizeof rows / sizeof *rows; row++) {
        if (row->to == &o.chip.chip) {
            row->arg = "LIST";
            row->help = "packages and YAML files (default 4+4)";
        }
        if (row->to == &o.chip.requests) row->help = "requests per run (default 200)";
    }
    int code = args_parse(c, rows, sizeof rows / sizeof *rows, argc, argv, NULL, 0, 0, NULL);
    return code >= 0 ? code : command_run(compare, &o);
}

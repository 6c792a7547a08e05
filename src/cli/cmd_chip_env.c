// cotenant chip env: a run whose policy is another program, by lines of JSON on stdin and stdout.
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/chip_args.h"
#include "cli/commands.h"
#include "eval/chip_env.h"
#include "eval/run_file.h"

typedef struct Options {
    ChipArgs    common;
    const char *mix, *records;
    double      load, bandwidth;
    int64_t     seed;
} Options;

typedef struct Keeper {  // of the records of the last episode
    const Options      *options;
    const ChipScenario *scenario;
} Keeper;

static size_t read_input(void *self, char *to, size_t size) {
    (void)self;
    ssize_t n;
    do n = read(STDIN_FILENO, to, size);
    while (n < 0 && errno == EINTR);
    return n > 0 ? (size_t)n : 0;
}

static Err keep(void *self, const ChipRun *run, const ChipTraffic *t, const RecordList *records) {
    const Keeper *k = self;
    return chip_run_file_write(k->options->records, k->scenario, run, t, &k->options->common.sets,
                               records);
}

static Err serve(const void *options, Arena *a) {
    const Options      *o = options;
    ChipScenarioOptions so;
    ChipScenario        s;
    Keeper              keeper = {o, &s};
    TRY(chip_args_scenario(&o->common, o->mix, o->bandwidth, &so));
    TRY(chip_scenario_open(&so, a, &s));
    ChipEnv env = {.scenario = &s,
                   .traffic = chip_args_traffic(&o->common, o->load, (uint64_t)o->seed),
                   .requests_most = CHIP_ENV_REQUESTS_MAX,
                   .read = read_input,
                   .out = stdout,
                   .keep = o->records != NULL ? keep : NULL,
                   .keeper = &keeper};
    if (env.traffic.requests > CHIP_ENV_REQUESTS_MAX)
        return err_set(ERR_ARG, "--requests: an episode has at most %d", CHIP_ENV_REQUESTS_MAX);
    return chip_env_run(&env, a);
}

int cmd_chip_env(const Command *c, int argc, char **argv) {
    Options o = {.mix = "mixed", .load = 0.8, .seed = 1};
    ArgRow  rows[5 + CHIP_ARG_ROWS] = {
         {"mix", ARG_TEXT, &o.mix, "NAME", "light, heavy, mixed, or networks (default mixed)", 0, 0},
         {"load", ARG_REAL, &o.load, "L",
          "offered load; 1: what the package can just answer (default 0.8)", 0, 1000},
         {"bandwidth", ARG_REAL, &o.bandwidth, "B",
          "memory bandwidth in bytes per cycle (default: the package's)", 0, 1000000},
         {"seed", ARG_INT, &o.seed, "S", "seed of the requests (default 1)", 0, INT64_MAX},
         {"records", ARG_TEXT, &o.records, "FILE",
          "write the records of the last episode as JSON lines", 0, 0},
    };
    chip_args_rows(&o.common, rows + 5);
    int code = args_parse(c, rows, sizeof rows / sizeof *rows, argc, argv, NULL, 0, 0, NULL);
    if (code >= 0) return code;
    if (o.common.sets.n > 0)
        return args_fail(EXIT_USAGE, "--set: the policy is the client's; it has no settings here");
    return command_run(serve, &o);
}

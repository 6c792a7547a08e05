// How many decisions a second pass through the pipe of `cotenant chip env`? The engine runs in a
// child process; the client is C: it finds the first waiting task and the first free unit in the
// text of a line, and starts the one on the other. bench_chip_env [MIX [ROUNDS]]
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "eval/chip_env.h"

enum { REQUESTS = 1000, LINE = 1 << 20 };

static size_t read_pipe(void *self, char *to, size_t size) {
    ssize_t n = read(*(int *)self, to, size);
    return n > 0 ? (size_t)n : 0;
}

static int serve(const char *mix, int in, int out) {
    Arena               a;
    ChipScenario        s;
    ChipScenarioOptions o = {.package = CHIP_SCENARIO_PACKAGE, .workload = mix};
    if (arena_init_growing(&a, 1 << 20, (size_t)1 << 32) != ERR_OK) return 1;
    Err e = chip_scenario_open(&o, &a, &s);
    if (e == ERR_OK) {
        ChipEnv env = {.scenario = &s,
                       .traffic = {.load = 0.9, .requests = REQUESTS, .seed = 1},
                       .requests_most = REQUESTS,
                       .read = read_pipe,
                       .reader = &in,
                       .out = fdopen(out, "w")};
        e = chip_env_run(&env, &a);
        if (fclose(env.out) != 0) e = ERR_IO;
    }
    if (e != ERR_OK) fprintf(stderr, "%s\n", err_why());
    arena_finish(&a);
    return e == ERR_OK ? 0 : 1;
}

// The first number of a list; -1: it is empty.
static long first_of(const char *line, const char *key) {
    const char *at = strstr(line, key);
    if (at == NULL || at[strlen(key)] == ']') return -1;
    return strtol(at + strlen(key), NULL, 10);
}

// Simba, the first half of the units, computes every layer.
static void answer(FILE *to, const char *line) {
    long task = first_of(line, "\"waiting\":["), unit = first_of(line, "\"free\":[");
    if (task >= 0 && unit >= 0 && unit < 4)
        fprintf(to, "{\"actions\":[[\"start\",%ld,%ld]]}\n", task, unit);
    else
        fputs("{\"actions\":[]}\n", to);
}

// Plays an episode; returns its decisions, 0 on a failure.
static long play(FILE *from, FILE *to, char *line, double *bytes) {
    long n = 0;
    fputs("{\"reset\":{}}\n", to);
    for (; fflush(to) == 0 && fgets(line, LINE, from) != NULL; n++) {
        *bytes += (double)strlen(line);
        if (strncmp(line, "{\"type\":\"done\"", 14) == 0) return n;
        if (strncmp(line, "{\"type\":\"observation\"", 21) != 0) return 0;
        answer(to, line);
    }
    return 0;
}

static int measure(FILE *from, FILE *to, int rounds) {
    char *line = malloc(LINE);
    if (line == NULL || fgets(line, LINE, from) == NULL) return 1;
    for (int i = 0; i < rounds; i++) {
        double bytes = 0;
        TimeNs start = clock_now(clock_monotonic());
        long   n = play(from, to, line, &bytes);
        double s = (double)(clock_now(clock_monotonic()) - start) / 1e9;
        if (n == 0) return 1;
        printf("%8.0f decisions/s: %ld, lines of %.0f bytes\n", (double)n / s, n,
               bytes / (double)n);
    }
    free(line);
    return 0;
}

int main(int argc, char **argv) {
    int down[2], up[2], status = 1;
    if (pipe(down) != 0 || pipe(up) != 0) return 1;
    pid_t child = fork();
    if (child < 0) return 1;
    if (child == 0) {
        close(down[1]);
        close(up[0]);
        _exit(serve(argc > 1 ? argv[1] : "light", down[0], up[1]));
    }
    close(down[0]);
    close(up[1]);
    FILE *from = fdopen(up[0], "r"), *to = fdopen(down[1], "w");
    int   code = measure(from, to, argc > 2 ? (int)strtol(argv[2], NULL, 10) : 3);
    fclose(to);
    fclose(from);
    waitpid(child, &status, 0);
    return code != 0 || status != 0;
}

// The command table: the first words of the command line select the row.
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/cpu.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/args.h"
#include "cli/commands.h"

static const Command commands[] = {
#define X(name, fn, about, usage, examples) {name, about, usage, examples, fn},
#include "cli/commands.def"
#undef X
};

static const Command overview[] = {
// a heading has no name
#define GROUP(title)                          {.about = title},
#define X(name_, fn, about_, usage, examples) {.name = name_, .about = about_},
#include "cli/commands.def"
#undef X
};
enum { N_COMMANDS = sizeof commands / sizeof *commands };

int cmd_version(const Command *c, int argc, char **argv) {
    int code = args_parse(c, NULL, 0, argc, argv, NULL, 0, 0, NULL);
    if (code >= 0) return code;
    puts("cotenant " COTENANT_VERSION);
    return 0;
}

static int print_overview(FILE *f) {
    fputs("cotenant lets many tenants' deep learning share hardware and still meet each tenant's "
          "target.\n",
          f);
    for (size_t i = 0; i < sizeof overview / sizeof *overview; i++)
        if (overview[i].name == NULL)
            fprintf(f, "\n%s:\n", overview[i].about);
        else
            fprintf(f, "  %-22s %s\n", overview[i].name, overview[i].about);
    fputs("\n'cotenant COMMAND --help' shows options and examples.\n", f);
    return 0;
}

// Number of words of argv that name the command; 0: they name another.
static int words_matched(const Command *c, int argc, char **argv) {
    const char *at = c->name;
    for (int words = 1; words < argc; words++) {
        size_t n = strcspn(at, " ");
        if (strlen(argv[words]) != n || strncmp(argv[words], at, n) != 0) return 0;
        if (at[n] == '\0') return words;
        at += n + 1;
    }
    return 0;
}

static bool begins(const Command *c, const char *words) {
    size_t n = strlen(words);
    return strncmp(c->name, words, n) == 0 && c->name[n] == ' ';
}

static bool list_group(const char *words, FILE *f) {
    bool any = false;
    for (int i = 0; i < N_COMMANDS; i++) {
        if (!begins(&commands[i], words)) continue;
        fprintf(f, "cotenant %-22s %s\n", commands[i].name, commands[i].about);
        any = true;
    }
    return any;
}

enum { WORDS_MOST = 3, TYPED = 96 };  // words of a command's name

// The first words as typed, up to the first option.
static void first_words(int argc, char **argv, int most, char out[TYPED]) {
    size_t n = 0;
    for (int i = 1; i < argc && i <= most && argv[i][0] != '-' && n < TYPED; i++)
        n += (size_t)snprintf(out + n, TYPED - n, "%s%s", i > 1 ? " " : "", argv[i]);
    if (n == 0) (void)snprintf(out, TYPED, "%s", argv[1]);
}

// The longest run of first words that is near a command.
static int no_command(int argc, char **argv) {
    const char *names[N_COMMANDS];
    char        words[TYPED], hint[TEXT_MEANT];
    const char *meant = NULL;
    for (int i = 0; i < N_COMMANDS; i++) names[i] = commands[i].name;
    for (int most = WORDS_MOST; most > 0 && meant == NULL; most--) {
        first_words(argc, argv, most, words);
        meant = text_meant(words, names, N_COMMANDS, NULL, hint);
    }
    return args_fail(EXIT_USAGE, "no command '%s'; %s", words,
                     meant != NULL ? meant : "'cotenant' alone lists them");
}

// The first words of several commands ("zoo", "cluster trace") list those commands.
static int unknown(int argc, char **argv) {
    bool help = strcmp(argv[argc - 1], "--help") == 0;
    char words[TYPED];
    first_words(argc, argv, WORDS_MOST, words);
    if (list_group(words, help ? stdout : stderr)) return help ? 0 : EXIT_USAGE;
    return no_command(argc, argv);
}

// A result that could not be written is a failure.
static int flushed(int code) {
    if (fflush(stdout) == 0 && !ferror(stdout)) return code;
    return code != 0 ? code : args_fail(EXIT_FAILED, "writing to standard output failed");
}

int main(int argc, char **argv) {
    (void)signal(SIGPIPE, SIG_IGN);
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0)
        return flushed(print_overview(stdout));
    static char version[] = "version";
    if (strcmp(argv[1], "--version") == 0) argv[1] = version;
    for (int i = 0; i < N_COMMANDS; i++) {
        int words = words_matched(&commands[i], argc, argv);
        if (words > 0) return flushed(commands[i].run(&commands[i], argc - words, argv + words));
    }
    return unknown(argc, argv);
}

int command_failed(Err e) {
    int code = e == ERR_ARG ? EXIT_USAGE : e == ERR_CONFIG ? EXIT_CONFIG : EXIT_FAILED;
    return args_fail(code, "%s", err_why()[0] != '\0' ? err_why() : err_text(e));
}

int command_run(Err (*run)(const void *options, Arena *a), const void *options) {
    Arena a = {0};
    Err   e = arena_init_growing(&a, 1 << 20, cpu_mem_budget(&cgroup_roots));
    if (e == ERR_OK) e = run(options, &a);
    int code = e == ERR_OK ? 0 : command_failed(e);
    arena_finish(&a);
    return code;
}

int command_json(json_t *document) {
    if (document == NULL) return args_fail(EXIT_FAILED, "no memory for the JSON document");
    Err e = json_write(stdout, document);
    json_decref(document);
    return e == ERR_OK ? 0 : command_failed(e);
}

json_t *command_shape(const Tensor *t) {
    if (t->rank < 0) return json_null();
    json_t *a = json_array();
    for (int32_t i = 0; i < t->rank; i++) json_array_append_new(a, json_integer(t->dims[i]));
    return a;
}

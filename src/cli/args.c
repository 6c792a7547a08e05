#include "cli/args.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"

enum { ROWS_MAX = 96 };

int args_fail(int code, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    fputs("cotenant: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
    return code;
}

static bool is_letter(const ArgRow *row) { return row->name[1] == '\0'; }

static void print_help(const Command *c, const ArgRow *rows, uint32_t n_rows) {
    printf("cotenant %s: %s\n\nusage: cotenant %s %s\n", c->name, c->about, c->name, c->usage);
    if (n_rows > 0 && rows[0].kind != ARG_GROUP) puts("\noptions:");
    for (uint32_t i = 0; i < n_rows; i++) {
        char left[64];
        if (rows[i].kind == ARG_GROUP) {
            printf("\n%s:\n", rows[i].name);
            continue;
        }
        (void)snprintf(left, sizeof left, "%s%s%s%s", is_letter(&rows[i]) ? "-" : "--",
                       rows[i].name, rows[i].arg != NULL ? " " : "",
                       rows[i].arg != NULL ? rows[i].arg : "");
        printf("  %-28s %s\n", left, rows[i].help);
    }
    printf("  %-28s %s\n", "--help", "this text");
    printf("\nexamples:\n%s", c->examples);
}

static const char *longs_name(const struct option *longs, int val) {
    while (longs->name != NULL && longs->val != val) longs++;
    return longs->name != NULL ? longs->name : "";
}

static int store_int(const ArgRow *row, const char *text) {
    char *end = NULL;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || v < row->min || v > row->max)
        return args_fail(EXIT_USAGE,
                         "--%s: '%s' is not a whole number from %" PRId64 " to %" PRId64, row->name,
                         text, row->min, row->max);
    *(int64_t *)row->to = v;
    return -1;
}

static int store_real(const ArgRow *row, const char *text) {
    char  *end = NULL;
    double v = strtod(text, &end);
    if (end == text || *end != '\0' || !(v >= (double)row->min && v <= (double)row->max))
        return args_fail(EXIT_USAGE, "--%s: '%s' is not a number from %" PRId64 " to %" PRId64,
                         row->name, text, row->min, row->max);
    *(double *)row->to = v;
    return -1;
}

static int store_list(const ArgRow *row, const char *text) {
    ArgList *list = row->to;
    if (list->n == ARG_LIST_MAX)
        return args_fail(EXIT_USAGE, "--%s: given more than %d times", row->name, ARG_LIST_MAX);
    list->option = row->name;
    list->at[list->n++] = text;
    return -1;
}

static int store(const ArgRow *row, const char *text) {
    switch (row->kind) {
    case ARG_FLAG: *(bool *)row->to = true; return -1;
    case ARG_INT: return store_int(row, text);
    case ARG_REAL: return store_real(row, text);
    case ARG_TEXT: *(const char **)row->to = text; return -1;
    case ARG_LIST: return store_list(row, text);
    case ARG_GROUP: return -1;
    }
    return -1;
}

// The option as typed, without its value. A letter is not at optind while its cluster is read.
static int unknown_option(const Command *c, const struct option *longs, uint32_t n_longs,
                          char **argv) {
    const char *names[ROWS_MAX + 1];
    char        word[64], otherwise[96];
    for (uint32_t i = 0; i < n_longs; i++) names[i] = longs[i].name;
    (void)snprintf(otherwise, sizeof otherwise, "see 'cotenant %s --help'", c->name);
    if (optopt >= 1000)
        return args_fail(EXIT_USAGE, "--%s takes no value; %s", longs_name(longs, optopt),
                         otherwise);
    if (optopt != 0) return args_fail(EXIT_USAGE, "unknown option -%c; %s", optopt, otherwise);
    const char *typed = argv[optind - 1] + 2;
    (void)snprintf(word, sizeof word, "%.*s", (int)strcspn(typed, "="), typed);
    const char *meant = text_nearest(word, names, n_longs);
    if (meant == NULL) return args_fail(EXIT_USAGE, "unknown option --%s; %s", word, otherwise);
    return args_fail(EXIT_USAGE, "unknown option --%s; did you mean --%s?", word, meant);
}

static int parse_options(const Command *c, const ArgRow *rows, uint32_t n_rows, int argc,
                         char **argv) {
    struct option longs[ROWS_MAX + 2] = {0};
    char          letters[2 * ROWS_MAX + 3] = ":h";
    uint32_t      n_longs = 0;
    CHECK(n_rows <= ROWS_MAX);
    for (uint32_t i = 0; i < n_rows; i++)
        if (rows[i].kind != ARG_GROUP)
            longs[n_longs++] = (struct option){
                rows[i].name, rows[i].kind == ARG_FLAG ? no_argument : required_argument, NULL,
                1000 + (int)i};
    for (uint32_t i = 0; i < n_rows; i++) {
        size_t n = strlen(letters);
        if (is_letter(&rows[i]))
            (void)snprintf(letters + n, sizeof letters - n, "%s%s", rows[i].name,
                           rows[i].kind == ARG_FLAG ? "" : ":");
    }
    longs[n_longs] = (struct option){"help", no_argument, NULL, 'h'};
    optind = 0;
    opterr = 0;
    for (int o; (o = getopt_long(argc, argv, letters, longs, NULL)) != -1;) {
        if (o == 'h') {
            print_help(c, rows, n_rows);
            return 0;
        }
        if (o == ':')
            return args_fail(EXIT_USAGE, "%s needs a value; see 'cotenant %s --help'",
                             argv[optind - 1], c->name);
        if (o == '?') return unknown_option(c, longs, n_longs + 1, argv);
        uint32_t row = (uint32_t)o - 1000;
        if (o < 1000)
            for (row = 0; rows[row].name[0] != o || !is_letter(&rows[row]);) row++;
        int code = store(&rows[row], optarg);
        if (code >= 0) return code;
    }
    return -1;
}

int args_parse(const Command *c, const ArgRow *rows, uint32_t n_rows, int argc, char **argv,
               const char **rest, uint32_t min_rest, uint32_t max_rest, uint32_t *n_rest) {
    int code = parse_options(c, rows, n_rows, argc, argv);
    if (code >= 0) return code;
    uint32_t n = (uint32_t)(argc - optind);
    if (n < min_rest || n > max_rest)
        return args_fail(EXIT_USAGE, "usage: cotenant %s %s\nsee 'cotenant %s --help'", c->name,
                         c->usage, c->name);
    for (uint32_t i = 0; i < n; i++) rest[i] = argv[optind + (int)i];
    if (n_rest != NULL) *n_rest = n;
    return -1;
}

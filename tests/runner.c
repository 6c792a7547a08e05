// Usage: PROGRAM NAME_test runs one test file of the folder; without a name, lists them.
#include "tests/runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Entry {
    const char *name;  // base name of the file, extension included
    TestMain   *run;
} Entry;

static Entry  entries[256];
static size_t n_entries;

void test_register(const char *file, TestMain *run) {
    const char *slash = strrchr(file, '/');
    if (n_entries == sizeof entries / sizeof *entries) abort();
    entries[n_entries++] = (Entry){slash ? slash + 1 : file, run};
}

static int same_name(const char *file, const char *name) {
    size_t n = strlen(name);
    return strncmp(file, name, n) == 0 && strcmp(file + n, ".c") == 0;
}

int main(int argc, char **argv) {
    for (size_t i = 0; i < n_entries; i++) {
        if (argc != 2)
            printf("%s\n", entries[i].name);
        else if (same_name(entries[i].name, argv[1]))
            return entries[i].run();
    }
    if (argc == 2) fprintf(stderr, "%s: no test file %s.c in this program\n", argv[0], argv[1]);
    return argc == 2;
}

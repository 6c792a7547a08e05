// Runs a fuzz target over the given files and the files of the given folders, without a fuzzer.
// Usage: PROGRAM NAME_fuzz FILE|FOLDER...
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/fuzz/fuzz.h"

typedef struct Entry {
    const char *name;  // base name of the file, extension included
    FuzzTarget *run;
} Entry;

static Entry       entries[64];
static size_t      n_entries;
static FuzzTarget *target;

void fuzz_register(const char *file, FuzzTarget *run) {
    const char *slash = strrchr(file, '/');
    if (n_entries == sizeof entries / sizeof *entries) abort();
    entries[n_entries++] = (Entry){slash ? slash + 1 : file, run};
}

static FuzzTarget *find(const char *name) {
    size_t n = strlen(name);
    for (size_t i = 0; i < n_entries; i++)
        if (strncmp(entries[i].name, name, n) == 0 && strcmp(entries[i].name + n, ".c") == 0)
            return entries[i].run;
    return NULL;
}

// The buffer is exactly as long as the file, so that a sanitizer sees the first byte read past it.
static int replay_bytes(FILE *f, size_t size) {
    uint8_t *data = malloc(size ? size : 1);
    int      ok = data && fread(data, 1, size, f) == size;
    if (ok) target(data, size);
    free(data);
    return ok;
}

static int replay_file(const char *path) {
    struct stat st;
    FILE       *f = fopen(path, "rb");
    int         ok = f && fstat(fileno(f), &st) == 0 && replay_bytes(f, (size_t)st.st_size);
    if (!ok) perror(path);
    if (f) fclose(f);
    return ok ? 1 : -1;
}

static int visible(const struct dirent *e) { return e->d_name[0] != '.'; }

static int replay_folder(const char *path) {
    struct dirent **names;
    int             n = scandir(path, &names, visible, alphasort), done = 0;
    for (int i = 0; i < n; i++) {
        char file[4096];
        snprintf(file, sizeof file, "%s/%s", path, names[i]->d_name);
        if (done >= 0) done = replay_file(file) < 0 ? -1 : done + 1;
        free(names[i]);
    }
    if (n >= 0) free(names);
    return done;
}

// Inputs run, or -1 when one could not be read.
static int replay(const char *path) {
    struct stat st;
    int         folder = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    return folder ? replay_folder(path) : replay_file(path);
}

int main(int argc, char **argv) {
    int total = 0;
    target = argc > 1 ? find(argv[1]) : NULL;
    if (!target) {
        fprintf(stderr, "usage: %s NAME_fuzz FILE|FOLDER...\n", argv[0]);
        return 2;
    }
    for (int i = 2; i < argc; i++) {
        int n = replay(argv[i]);
        if (n < 0) return 1;
        total += n;
    }
    printf("%d inputs\n", total);
    return total ? 0 : 77;  // nothing to run: skipped
}

// Runs a fuzz target over the given files and the files of the given folders: no fuzzer needed.
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// The buffer is exactly as long as the file, so that a sanitizer sees the first byte read past it.
static int replay_bytes(FILE *f, size_t size) {
    uint8_t *data = malloc(size ? size : 1);
    int      ok = data && fread(data, 1, size, f) == size;
    if (ok) LLVMFuzzerTestOneInput(data, size);
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
    for (int i = 1; i < argc; i++) {
        int n = replay(argv[i]);
        if (n < 0) return 1;
        total += n;
    }
    printf("%d inputs\n", total);
    return total ? 0 : 77;  // nothing to run: skipped
}

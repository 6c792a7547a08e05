#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

// Follows links, so that replacing a link's target leaves the link in place.
static Err resolve(FileNew *f, const char *path) {
    size_t n = strlen(path);
    if (n == 0 || n >= sizeof f->path || n >= PATH_MAX)
        return err_set(ERR_ARG, "cannot write a file: its name is empty or too long");
    char *real = realpath(path, NULL);
    if (real != NULL && strlen(real) < sizeof f->path)
        memcpy(f->path, real, strlen(real) + 1);
    else
        memcpy(f->path, path, n + 1);
    free(real);
    return ERR_OK;
}

static size_t dir_len(const char *path) {  // with its slash; 0: the working directory
    const char *slash = strrchr(path, '/');
    return slash == NULL ? 0 : (size_t)(slash - path) + 1;
}

static Err open_temp(FileNew *f, int *fd) {
    size_t dir = dir_len(f->path);
    for (int attempt = 0; attempt < 100; attempt++) {
        unsigned long long random = 0;
        if (getrandom(&random, sizeof random, 0) < 0)
            return file_failed("name a file beside", f->path);
        int n = snprintf(f->temp, sizeof f->temp, "%.*s.cotenant-%016llx.tmp", (int)dir, f->path,
                         random);
        if (n < 0 || (size_t)n >= sizeof f->temp)
            return err_set(ERR_ARG, "cannot write %s: its name is too long", f->path);
        *fd = open(f->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (*fd >= 0) return ERR_OK;
        if (errno != EEXIST) break;
    }
    Err e = file_failed("write a file beside", f->path);
    f->temp[0] = '\0';
    return e;
}

static Err open_target(FileNew *f, int *fd) {
    struct stat st;
    bool        exists = stat(f->path, &st) == 0;
    if (exists && S_ISDIR(st.st_mode))
        return err_set(ERR_IO, "cannot write %s: it is a directory", f->path);
    if (exists && !S_ISREG(st.st_mode)) {  // renaming over a device would destroy it
        *fd = open(f->path, O_WRONLY | O_CLOEXEC);
        return *fd >= 0 ? ERR_OK : file_failed("write", f->path);
    }
    TRY(open_temp(f, fd));
    if (exists && fchmod(*fd, st.st_mode & 0777) != 0) {
        Err e = file_failed("keep the permissions of", f->path);
        (void)close(*fd);
        (void)unlink(f->temp);
        return e;
    }
    return ERR_OK;
}

Err file_begin(FileNew *f, const char *path) {
    *f = (FileNew){0};
    TRY(resolve(f, path));
    int fd = -1;
    TRY(open_target(f, &fd));
    f->out = fdopen(fd, "wb");
    if (f->out != NULL) return ERR_OK;
    Err e = file_failed("write", f->path);
    (void)close(fd);
    if (f->temp[0] != '\0') (void)unlink(f->temp);
    return e;
}

void file_drop(FileNew *f) {
    if (f->out == NULL) return;
    (void)fclose(f->out);
    if (f->temp[0] != '\0') (void)unlink(f->temp);
    f->out = NULL;
}

static Err flush(FileNew *f) {
    bool broken = ferror(f->out) != 0;
    if (fflush(f->out) != 0) return file_failed("write", f->path);
    if (broken) return err_set(ERR_IO, "cannot write %s: is the disk full?", f->path);
    if (f->temp[0] != '\0' && fsync(fileno(f->out)) != 0) return file_failed("flush", f->path);
    FILE *out = f->out;
    f->out = NULL;
    if (fclose(out) == 0) return ERR_OK;
    Err e = file_failed("close", f->path);
    if (f->temp[0] != '\0') (void)unlink(f->temp);
    return e;
}

static Err sync_dir(FileNew *f) {
    f->temp[dir_len(f->temp)] = '\0';
    int fd = open(f->temp[0] == '\0' ? "." : f->temp, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return ERR_OK;  // a directory we may write but not read
    bool ok = fsync(fd) == 0 || errno == EINVAL || errno == ENOTSUP;
    Err  e = ok ? ERR_OK : file_failed("flush the directory of", f->path);
    (void)close(fd);
    return e;
}

Err file_commit(FileNew *f) {
    Err e = flush(f);
    if (e != ERR_OK) {
        file_drop(f);
        return e;
    }
    if (f->temp[0] == '\0') return ERR_OK;
    if (rename(f->temp, f->path) != 0) {
        e = file_failed("replace", f->path);
        (void)unlink(f->temp);
        return e;
    }
    return sync_dir(f);
}

Err file_replace(const char *path, const void *data, size_t len) {
    FileNew f;
    TRY(file_begin(&f, path));
    if (len > 0) (void)fwrite(data, 1, len, f.out);  // an error stays in f.out for file_commit
    return file_commit(&f);
}

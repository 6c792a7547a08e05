#include "base/term.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

bool term_is(FILE *f) { return fileno(f) >= 0 && isatty(fileno(f)) == 1; }

bool term_colour(FILE *f) {
    const char *no = getenv("NO_COLOR"), *kind = getenv("TERM");
    if (no != NULL && no[0] != '\0') return false;
    return term_is(f) && kind != NULL && strcmp(kind, "dumb") != 0;
}

uint32_t term_columns(FILE *f) {
    struct winsize size = {0};
    if (!term_is(f) || ioctl(fileno(f), TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
    return size.ws_col;
}

#include <stdio.h>

int main(void) {
    puts("cotenant " COTENANT_VERSION);
    return 0;
}

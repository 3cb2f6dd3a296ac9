#include <stdlib.h>
#include <string.h>
#include <unistd.h>
__attribute__((constructor)) static void begin(void) {
    const char *how = getenv("HARMFUL");
    if (how && !strcmp(how, "aborts")) abort();
    if (how && !strcmp(how, "exits")) exit(0);
    if (how && !strcmp(how, "faults")) *(volatile int *)0 = 1;
    if (how && !strcmp(how, "hangs")) for (;;) pause();
    if (how && !strcmp(how, "prints")) write(1, "\033[2Jloading\n", 12);
}

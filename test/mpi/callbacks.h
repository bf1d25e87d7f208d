/* What the parts of callbacks.c share. */
#ifndef UCG_TEST_CALLBACKS_H
#define UCG_TEST_CALLBACKS_H

extern int rank;
extern int size;

void require(int condition, const char* what);

/** See callbacks_interrupted.c. */
void interrupted(void);

/** See callbacks_ends.c. */
void ends(void);

#endif

/* nn/math/c_locale.h -- makes numbers in texts use a decimal point, whatever locale the program has
 * set.
 *
 * A program that uses libhearsay may call setlocale(). In a German locale, strtod() and printf()
 * use a comma ("0,9"). Options would then be refused, and metrics would not be JSON. Therefore
 * every thread of the library calls c_locale_enter() when it starts. Functions of the API that read
 * or write numbers enter the C locale and leave it again.
 */
#ifndef NN_MATH_C_LOCALE_H
#define NN_MATH_C_LOCALE_H

#include <locale.h>

/* Sets the calling thread's locale to "C". Returns the former locale, for c_locale_leave().
 * O(1). */
locale_t c_locale_enter(void);
void c_locale_leave(const locale_t *former);

/* Sets the thread's locale to "C" until the end of the enclosing block. */
#define C_LOCALE_HERE                                                                              \
    __attribute__((cleanup(c_locale_leave), unused)) const locale_t c_locale_former =              \
        c_locale_enter()

#endif

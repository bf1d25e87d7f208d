/*
 * A preloaded library that makes libucg report another version: processes with this version must
 * not share groups with it.
 */
__attribute__((visibility("default"))) void ucg_get_version(unsigned* major, unsigned* minor,
                                                            unsigned* release);

void ucg_get_version(unsigned* major, unsigned* minor, unsigned* release) {
    *major = 99;
    *minor = 0;
    *release = 0;
}

// Where the costs come from. This program has files and environment variables to itself.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "test/support/catch.hpp"
#include "ucg_coll/capi/profile_file.hpp"
#include "ucg_coll/cost/profile_origin.hpp"

namespace ucg::capi {
namespace {

/// A temporary folder that XDG_CONFIG_HOME, XDG_CONFIG_DIRS and HOME point into; the destructor
/// restores them.
class Home {
  public:
    Home() {
        std::string name = (std::filesystem::temp_directory_path() / "ucg-profile-XXXXXX").string();
        REQUIRE(::mkdtemp(name.data()) != nullptr);
        folder_ = name;
        for (auto& [variable, value] : saved_) {
            if (const char* now = std::getenv(variable)) {
                value = now;
            }
        }
        set("XDG_CONFIG_HOME", folder_ / "config");
        set("XDG_CONFIG_DIRS", folder_ / "system");
        set("HOME", folder_ / "home");
    }
    ~Home() {
        for (const auto& [variable, value] : saved_) {
            value.empty() ? ::unsetenv(variable) : ::setenv(variable, value.c_str(), 1);
        }
        std::filesystem::remove_all(folder_);
    }
    Home(const Home&) = delete;
    Home& operator=(const Home&) = delete;

    static void set(const char* variable, const std::string& value) {
        ::setenv(variable, value.c_str(), 1);
    }

    /// Writes a file with this content below the folder, and returns its path.
    std::string file(const std::string& name, const std::string& text) const {
        const std::filesystem::path path = folder_ / name;
        std::filesystem::create_directories(path.parent_path());
        std::ofstream(path) << text;
        return path.string();
    }
    std::string path(const std::string& name) const { return (folder_ / name).string(); }

  private:
    std::filesystem::path folder_;
    std::array<std::pair<const char*, std::string>, 3> saved_ = {
        {{"XDG_CONFIG_HOME", {}}, {"XDG_CONFIG_DIRS", {}}, {"HOME", {}}}};
};

std::string measured(double fixed_ns = 1234) {
    cost::Profile profile = cost::default_profile();
    profile.memory.cma.fixed_ns = fixed_ns;
    return cost::to_toml(profile);
}

const std::string kForeign = cost::origin_toml("Somebody family 1 model 2");

/// Returns what became of the files that were looked for, without those that are not there.
std::vector<std::string> outcomes(const LoadedProfile& loaded, const Home& home) {
    std::vector<std::string> found;
    for (const LookedFor& file : loaded.looked_for) {
        if (file.outcome != "not there") {
            found.push_back(
                fmt::format("{} {}", file.path.substr(home.path("").size()), file.outcome));
        }
    }
    return found;
}

TEST_CASE("profile file: without one, the built-in costs hold", "[profile]") {
    const Home home;
    const Result<LoadedProfile> loaded = load_profile("");
    REQUIRE(loaded.ok());
    CHECK(loaded->profile == builtin_costs_here().profile);
    CHECK(loaded->hash == cost::hash_of(builtin_costs_here().profile));
    CHECK(loaded->path.empty());
    CHECK_FALSE(loaded->named);
}

TEST_CASE("profile file: of another processor it is told of, and used if it was named",
          "[profile]") {
    const Home home;
    const std::string path = home.file("config/ucg/profile.toml", measured() + kForeign);
    const Result<LoadedProfile> found = load_profile("");
    REQUIRE(found.ok());
    const Result<LoadedProfile> named = load_profile(path);
    REQUIRE(named.ok());
    if (topo::this_processor().vendor.empty()) {
        return; // The processor is not known.
    }
    CHECK(found->profile == builtin_costs_here().profile);
    CHECK(found->path.empty());
    CHECK(found->complaint.find("measured on another processor (Somebody family 1 model 2)") !=
          std::string::npos);
    CHECK(found->complaint.find("The built-in costs are used") != std::string::npos);
    CHECK(named->profile.memory.cma.fixed_ns == 1234);
    CHECK(named->path == path);
    CHECK(named->complaint.find("It is used as UCG_PROFILE asks") != std::string::npos);
}

TEST_CASE("profile file: of this processor there is nothing to tell", "[profile]") {
    const Home home;
    home.file("config/ucg/profile.toml",
              measured() + cost::origin_toml(cost::processor_text(topo::this_processor())));
    const Result<LoadedProfile> found = load_profile("");
    REQUIRE(found.ok());
    CHECK(found->profile.memory.cma.fixed_ns == 1234);
    CHECK(found->complaint.empty());
}

TEST_CASE("profile file: where nobody has measured, or wants it, there is one advice",
          "[profile]") {
    const Home home;
    const std::string advice = tune_advice(load_profile("").value());
    CHECK(advice.find("`ucg_tune memory`") != std::string::npos);
    CHECK(advice.find(builtin_costs_here().name) != std::string::npos);
    CHECK(advice.find(fmt::format("some {} s", kTuneSeconds)) != std::string::npos);
    CHECK(tune_advice(load_profile("builtin").value()).empty());

    cost::Profile profile = cost::default_profile();
    // The profile has measured costs of the network alone.
    const std::string path = home.file("config/ucg/profile.toml", cost::to_toml(profile));
    CHECK(tune_advice(load_profile("").value()) == advice);
    CHECK(tune_advice(load_profile(path).value()) == advice);
    profile.memory.caches[static_cast<std::size_t>(cost::Cache::l2)].measured = true;
    home.file("config/ucg/profile.toml", cost::to_toml(profile));
    CHECK(tune_advice(load_profile("").value()).empty());
    // The complaint about a wrong file names the remedy by itself, so there is no further advice.
    home.file("config/ucg/profile.toml", "version = 7\n");
    const LoadedProfile wrong = load_profile("").value();
    CHECK(wrong.complaint.find("ucg_tune") != std::string::npos);
    CHECK(tune_advice(wrong).empty());
}

TEST_CASE("profile file: found by the rules of XDG", "[profile]") {
    const Home home;
    CHECK(default_profile_path() == home.path("config/ucg/profile.toml"));
    home.file("config/ucg/profile.toml", measured());
    const Result<LoadedProfile> loaded = load_profile("");
    REQUIRE(loaded.ok());
    CHECK(loaded->profile.memory.cma.fixed_ns == 1234);
    CHECK(loaded->hash == cost::hash_of(loaded->profile));
    CHECK(loaded->path == default_profile_path());

    // A path that is not absolute is ignored.
    Home::set("XDG_CONFIG_HOME", "config");
    CHECK(default_profile_path() == home.path("home/.config/ucg/profile.toml"));
    Home::set("HOME", "");
    CHECK(default_profile_path().empty());
    CHECK(load_profile("").ok());
}

TEST_CASE("profile file: found in the folders of the system, after the user's", "[profile]") {
    const Home home;
    Home::set("XDG_CONFIG_DIRS",
              "relative::" + home.path("first/") + ":" + home.path("") + "second");
    const std::string here = system_profile_path();
    const std::string prefix = home.path("first/ucg/");
    const std::string processor = cost::processor_text(topo::this_processor());
    CHECK(here.substr(0, prefix.size()) == prefix);
    CHECK(load_profile("")->looked_for.size() == (processor.empty() ? 3 : 5));

    home.file("second/ucg/profile.toml", measured(4));
    CHECK(load_profile("")->profile.memory.cma.fixed_ns == 4);
    home.file("first/ucg/profile.toml", measured(3));
    CHECK(load_profile("")->profile.memory.cma.fixed_ns == 3);
    if (!processor.empty()) {
        std::string name = processor;
        std::replace(name.begin(), name.end(), ' ', '-');
        CHECK(here == prefix + "profiles/" + name + ".toml");
        home.file(here.substr(home.path("").size()), measured(2) + cost::origin_toml(processor));
        CHECK(load_profile("")->profile.memory.cma.fixed_ns == 2);
        CHECK(load_profile("")->path == here);
    }
    home.file("config/ucg/profile.toml", measured(1));
    const Result<LoadedProfile> own = load_profile("");
    CHECK(own->profile.memory.cma.fixed_ns == 1);
    CHECK(own->complaint.empty());
    CHECK(outcomes(*own, home) == std::vector<std::string>{"config/ucg/profile.toml used"});
    CHECK(load_profile("builtin")->looked_for.empty());
}

TEST_CASE("profile file: without XDG_CONFIG_DIRS the system's folder is /etc/xdg", "[profile]") {
    const Home home;
    ::unsetenv("XDG_CONFIG_DIRS");
    CHECK(system_profile_path().substr(0, 13) == "/etc/xdg/ucg/");
    Home::set("XDG_CONFIG_DIRS", "");
    CHECK(system_profile_path().substr(0, 13) == "/etc/xdg/ucg/");
    Home::set("XDG_CONFIG_DIRS", "relative");
    CHECK(system_profile_path().empty());
    CHECK(load_profile("")->looked_for.size() == 1);
}

TEST_CASE("profile file: files that are wrong or foreign are told of and passed over",
          "[profile]") {
    const Home home;
    Home::set("XDG_CONFIG_DIRS", home.path("first") + ":" + home.path("second"));
    home.file("config/ucg/profile.toml", "version = 7\n");
    std::filesystem::create_directories(home.path("first/ucg/profile.toml"));
    const Result<LoadedProfile> none = load_profile("");
    REQUIRE(none.ok());
    CHECK(none->profile == builtin_costs_here().profile);
    CHECK(none->complaint.find("config/ucg/profile.toml: ") != std::string::npos);
    CHECK(none->complaint.find("first/ucg/profile.toml: cannot read the cost profile: Is a "
                               "directory. The built-in costs are used. Mend that file") !=
          std::string::npos);
    CHECK(outcomes(*none, home) == std::vector<std::string>{"config/ucg/profile.toml not usable",
                                                            "first/ucg/profile.toml not usable"});

    const std::string last = home.file("second/ucg/profile.toml", measured());
    const Result<LoadedProfile> loaded = load_profile("");
    REQUIRE(loaded.ok());
    CHECK(loaded->profile.memory.cma.fixed_ns == 1234);
    CHECK(loaded->complaint.find(last + " is used. ") != std::string::npos);
    CHECK(loaded->complaint.find("UCG_PROFILE=" + last + " silences this") != std::string::npos);
    CHECK(load_profile(last)->complaint.empty());

    if (!topo::this_processor().vendor.empty()) {
        std::filesystem::remove_all(home.path("config"));
        std::filesystem::remove_all(home.path("first"));
        home.file("second/ucg/profile.toml", measured() + kForeign);
        const Result<LoadedProfile> foreign = load_profile("");
        REQUIRE(foreign.ok());
        CHECK(foreign->profile == builtin_costs_here().profile);
        CHECK(foreign->complaint.find("(Somebody family 1 model 2)") != std::string::npos);
        CHECK(foreign->complaint.find("for all users by --system") != std::string::npos);
        CHECK(outcomes(*foreign, home) ==
              std::vector<std::string>{"second/ucg/profile.toml of another processor"});
    }
}

TEST_CASE("profile file: named by the user", "[profile]") {
    const Home home;
    home.file("config/ucg/profile.toml", "nonsense");
    const Result<LoadedProfile> loaded = load_profile(home.file("mine.toml", measured()));
    REQUIRE(loaded.ok());
    CHECK(loaded->profile.memory.cma.fixed_ns == 1234);
    CHECK(loaded->named);

    const Result<LoadedProfile> builtin = load_profile("builtin");
    REQUIRE(builtin.ok());
    CHECK(builtin->profile == builtin_costs_here().profile);
    CHECK(builtin->named);
}

TEST_CASE("profile file: one that the user named must be right", "[profile]") {
    const Home home;
    const std::string missing = home.path("missing.toml");
    CHECK(load_profile(missing).status().message() ==
          "UCG_PROFILE: " + missing + ": cannot read the cost profile: No such file or directory");
    const std::string wrong = home.file("wrong.toml", "version = 1\n[compute]\n");
    CHECK(load_profile(wrong).status().message() ==
          "UCG_PROFILE: " + wrong +
              ": line 2: compute.copy_per_byte_ns: expected a number of nanoseconds, not negative, "
              "found nothing");
    CHECK_FALSE(load_profile("/dev/zero").ok());
    CHECK_FALSE(load_profile(home.path("")).ok()); // The path is that of a folder.
}

TEST_CASE("profile file: one that was merely found may be wrong", "[profile]") {
    const Home home;
    home.file("config/ucg/profile.toml", "version = 7\n");
    const LogLevel level = log_level();
    set_log_level(LogLevel::error);
    const Result<LoadedProfile> loaded = load_profile("");
    set_log_level(level);
    REQUIRE(loaded.ok());
    CHECK(loaded->profile == builtin_costs_here().profile);
    CHECK(loaded->path.empty());
}

TEST_CASE("profile file: one that is too long is told of, whatever failed before", "[profile]") {
    const Home home;
    home.file("config/ucg/profile.toml", std::string((1 << 20) + 1, '#'));
    errno = ENOENT; // An earlier failure of another call has left this.
    const Result<LoadedProfile> loaded = load_profile("");
    REQUIRE(loaded.ok());
    CHECK(loaded->complaint.find("found more than 1048576 bytes") != std::string::npos);
}

} // namespace
} // namespace ucg::capi

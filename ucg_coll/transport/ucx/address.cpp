#include "ucg_coll/transport/ucx/address.hpp"

#include <array>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sys/stat.h>

namespace ucg::transport::ucx {

namespace {

constexpr std::uint32_t kMagic = 0x55434731; // "UCG1"
constexpr std::uint32_t kLanesMax = 64;
constexpr std::size_t kEndpointBytesMax = 255;

void append(std::string& out, std::uint64_t number) {
    std::array<char, sizeof(number)> bytes{};
    std::memcpy(bytes.data(), &number, sizeof(number));
    out.append(bytes.data(), bytes.size());
}

void append(std::string& out, std::string_view text) {
    append(out, static_cast<std::uint64_t>(text.size()));
    out.append(text);
}

/// Reads what append() wrote; once something is missing, everything after it is missing too.
class Reader {
  public:
    explicit Reader(std::string_view bytes) : rest_(bytes) {}

    std::uint64_t number() {
        std::uint64_t value = 0;
        const std::string_view bytes = take(sizeof(value));
        if (bytes.size() == sizeof(value)) {
            std::memcpy(&value, bytes.data(), sizeof(value));
        }
        return value;
    }

    std::string text() { return std::string(take(number())); }

    bool finished_well() const { return good_ && rest_.empty(); }

  private:
    std::string_view take(std::uint64_t count) {
        good_ = good_ && count <= rest_.size();
        const std::string_view taken = rest_.substr(0, good_ ? count : 0);
        rest_.remove_prefix(taken.size());
        return taken;
    }

    std::string_view rest_;
    bool good_ = true;
};

std::string boot_id() {
    std::ifstream file("/proc/sys/kernel/random/boot_id");
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// The inode that stands for a namespace of this process; 0 when the kernel does not say.
std::uint64_t namespace_inode(const char* path) {
    struct stat info {};
    return stat(path, &info) == 0 ? info.st_ino : 0;
}

} // namespace

ProcessPlace this_place() {
    const std::string boot = boot_id();
    ProcessPlace place;
    place.network = Hash().bytes(boot).value(namespace_inode("/proc/self/ns/net")).digest();
    place.memory = Hash()
                       .bytes(boot)
                       .value(namespace_inode("/proc/self/ns/pid"))
                       .value(namespace_inode("/proc/self/ns/ipc"))
                       .digest();
    return place;
}

std::string pack(const ProcessAddress& address) {
    std::string out;
    append(out, std::uint64_t{kMagic});
    append(out, address.process);
    append(out, address.place.network);
    append(out, address.place.memory);
    append(out, std::uint64_t{address.only_tcp});
    append(out, address.ucp);
    append(out, std::uint64_t{address.lanes.size()});
    for (const LaneAddress& lane : address.lanes) {
        append(out, lane.transport);
        append(out, lane.device);
        append(out, lane.device_address);
        append(out, lane.interface_address);
    }
    return out;
}

Result<ProcessAddress> unpack(std::string_view bytes) {
    Reader reader(bytes);
    ProcessAddress address;
    const bool ours = reader.number() == kMagic;
    address.process = reader.number();
    address.place.network = reader.number();
    address.place.memory = reader.number();
    const std::uint64_t only_tcp = reader.number();
    address.only_tcp = only_tcp == 1;
    address.ucp = reader.text();
    const std::uint64_t lanes = reader.number();
    if (ours && lanes <= kLanesMax) {
        for (std::uint64_t i = 0; i < lanes; ++i) {
            LaneAddress& lane = address.lanes.emplace_back();
            lane.transport = reader.text();
            lane.device = reader.text();
            lane.device_address = reader.text();
            lane.interface_address = reader.text();
        }
    }
    if (!ours || lanes > kLanesMax || !reader.finished_well() || only_tcp > 1 ||
        address.process == 0) {
        return failure(Code::invalid_argument,
                       "the address of a peer ({} bytes) is not one that this version of UCG makes",
                       bytes.size());
    }
    return address;
}

std::string pack(const LaneOffer& offer) {
    std::string out;
    append(out, offer.from);
    append(out, offer.to);
    append(out, offer.endpoint);
    return out;
}

Result<LaneOffer> unpack_offer(std::string_view bytes) {
    Reader reader(bytes);
    LaneOffer offer;
    offer.from = reader.number();
    offer.to = reader.number();
    offer.endpoint = reader.text();
    if (!reader.finished_well() || offer.from >= kLanesMax || offer.to >= kLanesMax ||
        offer.endpoint.empty() || offer.endpoint.size() > kEndpointBytesMax) {
        return failure(Code::invalid_argument, "{} bytes that do not offer an endpoint",
                       bytes.size());
    }
    return offer;
}

std::string pack(const LineMemory& memory) {
    std::string out;
    append(out, memory.address);
    append(out, memory.key);
    return out;
}

Result<LineMemory> unpack_lines(std::string_view bytes) {
    Reader reader(bytes);
    LineMemory memory;
    memory.address = reader.number();
    memory.key = reader.text();
    if (!reader.finished_well() || memory.address == 0 || memory.key.empty()) {
        return failure(Code::invalid_argument, "{} bytes that do not open memory", bytes.size());
    }
    return memory;
}

} // namespace ucg::transport::ucx

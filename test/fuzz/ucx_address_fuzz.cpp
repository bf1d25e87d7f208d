// Fuzzes what processes tell one another through the caller's allgather and in control messages:
// the address of a process, an offer of the short lane, memory for lines; and the text in which UCX
// says what it opened. The first byte selects one. Each value has only one encoding, so a value
// that is accepted is packed to the very bytes that it came from.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "ucg_coll/transport/ucx/address.hpp"
#include "ucg_coll/transport/ucx/context.hpp"

namespace ucg::transport::ucx {
namespace {

void require(bool holds) {
    if (!holds) {
        std::abort();
    }
}

template <typename T>
void check(const Result<T>& value, std::string_view bytes) {
    if (value.ok()) {
        require(pack(*value) == bytes);
    } else {
        require(value.status().code() == Code::invalid_argument);
        require(!value.status().message().empty());
    }
}

void check_inventory(std::string_view text) {
    const Result<UcpInventory> found = parse_inventory(text);
    if (!found.ok()) {
        return;
    }
    require(!found->resources.empty());
    for (const UcpInventory::Resource& resource : found->resources) {
        require(found->contains(resource.transport, resource.device));
        require(text.find(resource.transport + "/" + resource.device) != std::string_view::npos);
    }
    require(!found->only_tcp() || (found->has_network() && found->has_tcp()));
}

void check(char what, std::string_view bytes) {
    switch (what) {
    case 'a': check(unpack(bytes), bytes); break;
    case 'o': check(unpack_offer(bytes), bytes); break;
    case 'm': check(unpack_lines(bytes), bytes); break;
    case 'i': check_inventory(bytes); break;
    default: break;
    }
}

} // namespace
} // namespace ucg::transport::ucx

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size > 0) {
        ucg::transport::ucx::check(static_cast<char>(data[0]),
                                   {reinterpret_cast<const char*>(data) + 1, size - 1});
    }
    return 0;
}

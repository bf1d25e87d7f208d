#include "ucg_coll/transport/ucx/ucx.hpp"

#include <mutex>

#include <ucp/api/ucp.h>

#include "ucg_coll/transport/ucx/core.hpp"

namespace ucg::transport::ucx {

UcxVersions versions() {
    unsigned major = 0;
    unsigned minor = 0;
    unsigned release = 0;
    ucp_get_version(&major, &minor, &release);
    return {fmt::format("{}.{}", UCP_API_MAJOR, UCP_API_MINOR),
            fmt::format("{}.{}.{}", major, minor, release)};
}

Result<std::unique_ptr<UcxWorker>> UcxWorker::create(const UcxOptions& options) {
    Result<std::unique_ptr<UcxCore>> core = UcxCore::create(options);
    if (!core) {
        return core.status();
    }
    return std::unique_ptr<UcxWorker>(new UcxWorker(std::move(*core)));
}

/// A group that is being made.
class UcxGroup final : public NetworkGroup {
  public:
    UcxGroup(UcxCore& core, Rank self, std::size_t ranks)
        : core_(core), group_(std::make_unique<GroupState>()) {
        group_->self = self;
        group_->members.resize(ranks);
    }
    ~UcxGroup() override {
        if (group_ != nullptr) {
            const std::lock_guard lock(core_.mutex());
            core_.release_peers(*group_);
        }
    }
    UcxGroup(const UcxGroup&) = delete;
    UcxGroup& operator=(const UcxGroup&) = delete;

    bool add_known(Rank rank, std::uint64_t process) override {
        const std::lock_guard lock(core_.mutex());
        return core_.add_known(*group_, rank, process);
    }
    Status add(Rank rank, std::string_view address) override {
        const std::lock_guard lock(core_.mutex());
        return core_.add(*group_, rank, address);
    }
    Result<std::unique_ptr<Transport>>
    make_transport(std::span<const std::uint32_t> group_ids) override {
        Result<std::unique_ptr<UcxTransport>> made = make(group_ids);
        if (!made.ok()) {
            return made.status();
        }
        return std::unique_ptr<Transport>(std::move(*made));
    }
    Result<std::unique_ptr<UcxTransport>> make(std::span<const std::uint32_t> group_ids) {
        UCG_ASSERT(group_ids.size() == group_->members.size());
        group_->id = group_ids[static_cast<std::size_t>(group_->self)];
        group_->ids = GroupIds(group_ids);
        std::unique_ptr<UcxTransport> made(new UcxTransport(core_, std::move(group_)));
        const std::lock_guard lock(core_.mutex());
        if (Status status = core_.attach(*made->group_); !status.ok()) {
            return status;
        }
        return made;
    }

  private:
    UcxCore& core_;
    std::unique_ptr<GroupState> group_; ///< Null once the transport has it.
};

UcxWorker::UcxWorker(std::unique_ptr<UcxCore> core) : core_(std::move(core)) {}
UcxWorker::~UcxWorker() = default;

std::string_view UcxWorker::address() const {
    return core_->address();
}
std::uint64_t UcxWorker::process() const {
    return core_->process();
}
std::unique_ptr<NetworkGroup> UcxWorker::begin_group(Rank self, std::size_t ranks) {
    return std::make_unique<UcxGroup>(*core_, self, ranks);
}
unsigned UcxWorker::progress() {
    const std::unique_lock lock(core_->mutex(), std::try_to_lock);
    return lock.owns_lock() ? core_->progress() : 0;
}
void UcxWorker::begin_close() {
    const std::lock_guard lock(core_->mutex());
    core_->begin_close();
}
bool UcxWorker::close_progress() {
    const std::lock_guard lock(core_->mutex());
    return core_->close_progress();
}
const std::vector<InterfaceInfo>& UcxWorker::interfaces() const {
    return core_->interfaces();
}
bool UcxWorker::only_tcp() const {
    return core_->only_tcp();
}
std::string UcxWorker::describe() const {
    const std::lock_guard lock(core_->mutex());
    return core_->describe();
}

Result<std::unique_ptr<UcxTransport>> UcxTransport::create(UcxWorker& worker,
                                                           std::span<const std::uint32_t> group_ids,
                                                           Rank self,
                                                           const std::vector<PeerAddress>& peers) {
    UcxGroup group(*worker.core_, self, peers.size());
    for (std::size_t rank = 0; rank < peers.size(); ++rank) {
        if (peers[rank].empty() || static_cast<Rank>(rank) == self) {
            continue;
        }
        if (Status status = group.add(static_cast<Rank>(rank), peers[rank]); !status.ok()) {
            return status;
        }
    }
    return group.make(group_ids);
}

UcxTransport::UcxTransport(UcxCore& core, std::unique_ptr<GroupState> group)
    : core_(core), group_(std::move(group)) {}

UcxTransport::~UcxTransport() {
    core_.detach(*group_);
}

void UcxTransport::post(std::span<Message> messages) {
    const std::lock_guard lock(core_.mutex());
    if (group_->abandoned) [[unlikely]] {
        for (Message& message : messages) {
            group_->complete(message, group_->status);
        }
        return;
    }
    // A peer that waits for this rank to be ready hears it before long data fill the link.
    for (Message& message : messages) {
        if (message.direction == Direction::recv) {
            core_.receive(*group_, message);
        }
    }
    for (Message& message : messages) {
        if (message.direction == Direction::send) {
            core_.send(*group_, message);
        }
    }
    core_.run_deferred();
}

/// If another thread drives the worker, it moves this group's messages as well.
unsigned UcxTransport::progress() {
    const std::unique_lock lock(core_.mutex(), std::try_to_lock);
    if (!lock.owns_lock()) {
        return 0;
    }
    const unsigned handled = core_.progress();
    failed_ = !group_->status.ok();
    return handled + std::exchange(group_->completed, 0U);
}

void UcxTransport::abandon() {
    core_.abandon(*group_);
}

Status UcxTransport::status() const {
    const std::lock_guard lock(core_.mutex());
    return group_->status;
}

} // namespace ucg::transport::ucx

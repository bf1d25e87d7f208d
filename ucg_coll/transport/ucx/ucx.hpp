// Facade of ucg_coll/transport/ucx: what the rest of the library sees of UCX, which is nothing of
// UCX itself. One UcxWorker per process holds the UCX objects and the connections; one UcxTransport
// per group carries its messages over them.
//
// libucg does not contain the folder. It loads it as a library of its own (library.hpp) when a
// group first needs it: UCX costs milliseconds to load, and puts its own functions in the place of
// the process's mmap, munmap, brk and shmat. libucg knows a worker as a ProcessNetwork.
//
// Threading: a transport is used by one thread at a time, as Transport says. With
// UcxOptions::threads the worker may be driven by any other thread meanwhile, and by other groups:
// it has a lock of its own, which is held while UCX works and never while anything else runs.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ucg_coll/base/base.hpp"
#include "ucg_coll/transport/transport.hpp"

namespace ucg::transport::ucx {

class UcxCore;
class UcxGroup;
struct GroupState;

/// What UCX and the short lane are started with.
struct UcxOptions {
    /// Settings as in UCX's environment without the prefix, for example {"TLS", "tcp"}. They win
    /// over the environment, which holds for everything not named here.
    std::vector<std::pair<std::string, std::string>> config;

    /// Send short messages by UCT directly, where an interface offers it.
    bool short_lane = true;

    /// Leave out interfaces of which UCX says that a message costs the processor more microseconds.
    /// Where a message takes a system call, what UCP adds cannot be seen, while one more set of
    /// sockets to ask for arrivals makes every wait dearer.
    double lane_overhead_us_max = 1;

    /// Where an interface connects endpoints to interfaces as well as to endpoints, choose the
    /// latter, which costs a round trip more. For tests: it makes TCP connect as InfiniBand does.
    bool lane_prefers_endpoints = false;

    /// Put the shortest messages of the short lane into the receiver's memory, where UCX shares
    /// memory with the peer.
    bool lane_puts = true;

    /// Ask UCX to report dead peers. That leaves out UCX's shared-memory transports, which cannot
    /// do so.
    bool detect_failures = true;

    /// Messages of more bytes go by rendezvous.
    std::size_t eager_bytes = 8192;

    /// Like eager_bytes, but where nothing but TCP leads to other hosts; the greater of the two
    /// holds there. A rendezvous over TCP costs a round trip of system calls more, and saves a copy
    /// that is short beside the kernel's own. The receiver begins such a rendezvous when it posts
    /// the receive: UCX's own asks when the message is due, and the answer then stands in the
    /// receiver's link behind what that is sending, on a slow link for milliseconds.
    std::size_t eager_bytes_tcp = 64 << 10;

    /// What this host's link carries, in bytes per second; 0: not known. Where the link is known to
    /// be slow, no more than what it carries in a few milliseconds is handed to a TCP connection at
    /// once: schedules that keep messages out of one another's way tell the next rank when one has
    /// gone, and a kernel that holds all of it would let that word outrun the message.
    /// UCX_TCP_SNDBUF wins over this.
    std::uint64_t link_bytes_per_second = 0;

    /// How many bytes of a peer's memory our eager messages may occupy before the peer has posted
    /// their receives: some 200 for each message, and in addition the data of a longer one. So a
    /// rank that only sends, as most do in a gather, gets well over a thousand short messages ahead
    /// before it waits. Beyond the window messages go by rendezvous. At least twice what one eager
    /// message takes.
    std::uint32_t window_bytes = 320 << 10;

    /// How many processes this one may exchange messages with, and how many share a host's
    /// adapters; the same in all processes of the job. 0: not known, which UCX takes for 1. By them
    /// UCX chooses transports; UCX_NUM_EPS and UCX_NUM_PPN win.
    std::size_t estimated_num_eps = 0;
    std::size_t estimated_num_ppn = 0;

    /// Do several threads use the worker and its transports?
    bool threads = false;

    /// For how long a connection that cannot be made is tried again; it is tried eight times at
    /// least, since a process may make no progress for longer, unless the tries themselves took
    /// that long. A network may have no route for a while, or a full table of neighbours; a peer
    /// may be slow.
    std::chrono::milliseconds connect_timeout{30000};

    /// For how long peers that do not answer may be waited for, in begin_close() ...
    /// close_progress() and when a group is given up or ends.
    std::chrono::milliseconds close_timeout{2000};
};

/// UCX's versions: that of the headers ("1.13", they tell no more) and of the library that runs.
struct UcxVersions {
    std::string compiled;
    std::string running;
};
UcxVersions versions();

/// A UCT interface that UCX found, and what became of it; for ucg_info.
struct InterfaceInfo {
    std::string transport;       ///< As UCX calls it, for example "tcp".
    std::string device;          ///< For example "eth0".
    bool usable = false;         ///< The short lane has it open.
    std::string reason;          ///< Why it is not usable; empty if it is.
    std::size_t short_bytes = 0; ///< The longest message that it sends as a short one.
    double latency_us = 0;       ///< As UCX estimates it.
};

/// What one process must know to reach another: the latter's UcxWorker::address(), or empty for
/// none.
using PeerAddress = std::string;

/// The UCX objects and connections of a process, which its groups share.
class UcxWorker final : public ProcessNetwork {
  public:
    static Result<std::unique_ptr<UcxWorker>> create(const UcxOptions& options);

    /// Closes what is still open, in bounded time. All transports on it must be gone.
    ~UcxWorker() override;

    std::string_view address() const override;
    std::uint64_t process() const override;

    /// Begins to make a UcxTransport.
    std::unique_ptr<NetworkGroup> begin_group(Rank self, std::size_t ranks) override;

    bool only_tcp() const override;

    /// Returns how many events were handled. It does nothing when it is called from within itself,
    /// or while another thread uses the worker.
    unsigned progress() override;

    /// Starts to part from all peers: tells them, and waits until they have taken what was sent to
    /// them. To be followed by close_progress() until it returns true; then the host's fence,
    /// during which progress() goes on serving peers that are slower; then the destructor. Every
    /// step is bounded in time, and may be left out when the peers end in some other order.
    void begin_close() override;
    bool close_progress() override;

    const std::vector<InterfaceInfo>& interfaces() const;

    /// Several lines of text for ucg_info: what UCX found, what is used, why something is not.
    std::string describe() const;

  private:
    friend class UcxTransport;
    explicit UcxWorker(std::unique_ptr<UcxCore> core);
    std::unique_ptr<UcxCore> core_;
};

/// One group's messages over a UcxWorker.
class UcxTransport final : public Transport {
  public:
    /// Makes this process's end of a group whose addresses are all at hand. `group_ids` and `peers`
    /// have an entry per rank, the former as NetworkGroup::make_transport() says; peers that are
    /// empty are not served. Processes may create their ends in any order: what arrives earlier
    /// waits.
    static Result<std::unique_ptr<UcxTransport>> create(UcxWorker& worker,
                                                        std::span<const std::uint32_t> group_ids,
                                                        Rank self,
                                                        const std::vector<PeerAddress>& peers);

    /// REQUIRES: no message is in flight, unless status() is not ok. Receives that are still posted
    /// become `failed`; sends that are still in flight have a bounded time to end.
    ~UcxTransport() override;

    std::string_view name() const override { return "ucx"; }
    void post(std::span<Message> messages) override;
    unsigned progress() override;
    /// Waits, in bounded time, until UCX holds no message of the group any more. A peer that does
    /// not let go of one by then loses the connection, and with it all groups that share the
    /// connection.
    void abandon() override;
    bool has_failed() const override { return failed_; }
    Status status() const override;

  private:
    friend class UcxGroup;
    UcxTransport(UcxCore& core, std::unique_ptr<GroupState> group);
    UcxCore& core_;
    std::unique_ptr<GroupState> group_;
    bool failed_ = false; ///< The group had failed when progress() last looked.
};

} // namespace ucg::transport::ucx

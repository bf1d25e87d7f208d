"""Good values of every option of the ucg_* tools, for good_options_test.py.

For each command its options, each with trials: "context | option with value => what is seen". The
context is what else is given, in addition to the command's base; an option that is given again
replaces the earlier one. What is seen is a regular expression for the output, or for a file ("in
FILE"); where there is none, the output has to be another than without the option; "as before" asks
for the status alone, where nothing else can be told at once. "elsewhere" names the test that has
the values.
"""

import os
import subprocess

FILES = {
    "topology.conf": "SwitchName=s0 Nodes=n[0-1] LinkSpeed=1gbit\n"
                     "SwitchName=s1 Nodes=n[2-3] LinkSpeed=100mbit\n"
                     "SwitchName=top Switches=s[0-1]\n",
    "bare.conf": "SwitchName=s0 Nodes=n[0-3] LinkSpeed=100\n",
    "costs.toml": "version = 1\n[levels.network]\nlatency_ns = 5e6\noverhead_ns = 1.0\n"
                  "gap_ns = 1.0\ngap_per_byte_ns = 1.0\n",
    "platform.xml": "<?xml version='1.0'?>\n"
                    "<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
                    "<platform version=\"4.1\">\n  <cluster id=\"c\" prefix=\"n\" suffix=\"\" "
                    "radical=\"0-3\" speed=\"1Gf\" bw=\"1GBps\" lat=\"500ns\"/>\n</platform>\n",
    "network.toml": "version = 1\n[levels.network]\nlatency_ns = 5e3\noverhead_ns = 1e2\n"
                    "gap_ns = 1e2\ngap_per_byte_ns = 1.0\n"
                    + "".join(f"[network.{name}]\nalpha_p_ns = 4e3\nalpha_r_ns = 1e3\n"
                              "beta_ns_per_byte = 1.0\n" for name in ("minimum", "median")),
    "placement.txt": "rank 0: host 0\nrank 1: host 1\nrank 2: host 1\n",
    "short.batch": "first -t barrier\nsecond -t bcast -s 16\n",
    "mpi.json": '{"library": "Open MPI v4.1.4", "samples": 200, "overhead_ns": 30.28, '
                '"isend_ns": 325.14, "wait_ns": 341.82, "window_isend_ns": 325.54, '
                '"window_waitall_ns": 22.55, "window_ns": 201.60, "latency_ns": 738.76}\n',
    "ranks.csv": "calibrate,iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,"
                 "avg_mr,overall_mr\n"
                 "am_lat_8,50000,0.085,0.089,0.089,85.72,85.72,11235955,11235955\n"
                 "am_lat_16,50000,0.090,0.090,0.090,168.77,168.77,11060637,11060637\n"
                 "am_lat_64,50000,0.095,0.097,0.097,629.22,629.22,10309278,10309278\n"
                 "am_bw_8,200000,0.040,0.048,0.048,159.16,159.16,20861580,20861580\n"
                 "ucp_put_bw_65536,5000,0.572,0.574,0.574,108809.56,108809.56,1740953,1740953\n"
                 "ucp_put_bw_1048576,500,18.433,18.680,18.680,53532.92,53532.92,53533,53533\n",
    "schedules.txt": "schedule bcast flag_slots rank 0 of 2 input 8 output 0 scratch 0 element 8 "
                     "flag_slot 8\n0: share input[0:8]\n\n"
                     "schedule bcast flag_slots rank 1 of 2 input 0 output 8 scratch 0 element 8 "
                     "flag_slot 0\n0: copy flag_slot@0[0:8] -> output[0:8]\n",
    "gatherv.txt": "schedule gatherv flag_slots rank 0 of 2 input 8 output 24 scratch 0 element 8 "
                   "flag_slot 0\n0: copy input[0:8] -> output[0:8]\n"
                   "1: copy flag_slot@1[0:16] -> output[8:24]\n\n"
                   "schedule gatherv flag_slots rank 1 of 2 input 16 output 0 scratch 0 element 8 "
                   "flag_slot 16\n0: share input[0:16]\n",
    "node.machine": "machine cores 2 l2_bytes 0 l3_bytes 1048576 memory_bytes 1073741824\n"
                    "core 0: package 0 numa 0 l3 0 l2 0 threads 0\n"
                    "core 1: package 1 numa 0 l3 1 l2 1 threads 1\n",
}
SYNTHETIC = "'package:2 l3:2 core:2 pu:1'"
XML = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "topo",
                   "two_packages.xml")

# Options that cannot be given together.
EXCLUDES = {
    "--placement": {"--ranks", "--hosts", "--ranks-per-host", "--sockets"},
    "--file": {"--hosts", "--ranks-per-host", "--collective"},
    "--ranks-per-host": {"--ranks"},
    "--system": {"--output"},
}
# Commands of tools that also work without a command.
BESIDE = {"ucg_perftest": ["breakdown"]}
# Options that need another program.
NEEDS = {"--plot": "gnuplot"}

HOSTS = "--hosts 4 --ranks-per-host 1"
PROFILE = {
    "--profile": [f"{HOSTS} | --profile costs.toml"],
    "--network": [f"{HOSTS} --bytes 16k | --network tcp", f"{HOSTS} --bytes 16k | --network "
                  "one_kernel"],
    "--network-latency": [f"{HOSTS} --bytes 1k --network one_kernel | --network-latency 1ms"],
    "--staging": ["--bytes 64k | --staging 0"],
    "--flag-slots": ["| --flag-slots 0"],
    "--no-kernel-copies": ["--nonblocking --bytes 256k | --no-kernel-copies"],
    "--shared-heap": ["--bytes 32k | --shared-heap"],
    "--ranks-per-cpu": ["--bytes 4k | --ranks-per-cpu 4"],
}
TOPOLOGY = {"--topology": [f"--collective alltoall {HOSTS} --bytes 64k | --topology topology.conf"]}
QUESTION = {
    "--collective": ["| --collective bcast"],
    "--ranks": ["| --ranks 6"],
    "--bytes": ["| --bytes 2k"],
    "--blocks": ["--collective allgatherv | --blocks 8,0,16,8"],
    "--root": ["--collective bcast | --root 2"],
    "--element-bytes": ["--bytes 4k | --element-bytes 1k"],
    "--in-place": ["--bytes 4k | --in-place"],
    "--non-commutative": ["--bytes 64k | --non-commutative"],
    "--nonblocking": ["--bytes 256k | --nonblocking"],
    "--placement": ["| --placement placement.txt"],
    "--hosts": ["| --hosts 2"],
    "--ranks-per-host": ["--hosts 2 | --ranks-per-host 3"],
    "--sockets": ["--collective barrier --ranks 12 | --sockets 2"],
    "--this-machine": ["--bytes 1M | --this-machine"],
    "--unbound": ["--collective allreduce --bytes 1M | --unbound"],
    **PROFILE, **TOPOLOGY,
}
POSTAL = "--alpha-p 4us --alpha-r 1us"
LOG = "--latency 4us --overhead 1us --gap 2us"
PRICES = {
    "--model": [f"| --model pipelining-postal {POSTAL}", "| --model postal --alpha 4us",
                f"| --model logp {LOG}", f"| --model logfp {LOG} --free 2",
                f"| --model loggp {LOG} --gap-per-byte 1ns",
                f"{HOSTS} | --profile network.toml --model network.minimum",
                f"{HOSTS} | --profile network.toml --model network.median"],
    "--alpha-p": [f"--model pipelining-postal {POSTAL} | --alpha-p 40us"],
    "--alpha-r": [f"--model pipelining-postal {POSTAL} | --alpha-r 10us"],
    "--alpha": ["--model postal --alpha 4us | --alpha 5us"],
    "--beta": ["--model postal --alpha 4us | --beta 1ns"],
    "--gamma": ["--model postal --alpha 4us | --gamma 1ns"],
    "--compute": ["--model postal --alpha 4us | --compute 100ns"],
    "--latency": [f"--model logp {LOG} | --latency 40us"],
    "--overhead": [f"--model logp {LOG} | --overhead 10us"],
    "--gap": [f"--model logp {LOG} --collective allreduce --ranks 9 | --gap 20us"],
    "--gap-per-byte": [f"--model loggp {LOG} --gap-per-byte 1ns | --gap-per-byte 100ns"],
    "--copy": ["--model postal --alpha 4us | --copy 100ns"],
    "--free": [f"--model logfp {LOG} --ranks 9 --free 1 | --free 9"],
    # The options of a run on several hosts, whose ranks share a link.
    "--host-link": ["--hosts 2 --ranks-per-host 4 | --host-link 1us"],
    "--host-link-message": ["--hosts 2 --ranks-per-host 4 | --host-link-message 10us"],
}
MACHINE = {
    "--synthetic": [f"| --synthetic {SYNTHETIC}"],
    "--xml": [f"| --xml {XML}"],
    "--machine-file": ["| --machine-file node.machine"],
}
TAG, AM = "-t tag_lat", "-t am_lat -x posix -d memory"
BW = "-t tag_bw"
ONE_CALL = "--collective allreduce --ranks 4 --bytes 8"
TUNE = {
    "--format": ["| --format json => ^\\{", "| --format text => ns",
                 "| --output - --format toml => ^version = 1"],
    "--output": ["| --output new.toml => in new.toml ^version = 1", "| -o - => ^version = 1"],
    "--plot": ["| --plot lines.svg => in lines.svg </svg>"],
    "--no-progress": ["| --no-progress => ns", "| -q => ns"],
    "--system": ["| --system => ns"],
    "--time": ["| --time 0.1 => ns"],
}

COMMANDS = {
    "ucg_info": {"options": {
        "-v": ["| -v => ^UCG \\d+\\.\\d+"],
        "--build": ["| --build => compiler", "| -b"],
        "--topology": ["| --topology => Package 0", "| -t"],
        "--transports": ["| --transports => shm", "| -d"],
        "--costs": ["| --costs => profile", "| -c"],
        "--config": ["| --config => UCG_TLS", "| -f"],
        "--report": ["| --report => ^  kernel +\\S"],
        "--format": ["| --format json => ^\\{"],
    }},
    "ucg_plan list": {"base": ONE_CALL, "options": {
        **QUESTION,
        "--ranks": ["--collective allreduce --ranks 1 | --ranks 6"],
        "--blocks": ["--collective allgatherv | --blocks 8,0,16,8 => eligible"],
        "--root": ["--collective bcast | --root 2 => eligible"],
        "--ranks-per-host": ["--hosts 2 --ranks 2 | --ranks-per-host 3"],
        "--unbound": ["| --unbound => eligible"],
        # Costs do not affect which algorithms are eligible.
        "--nonblocking": ["| --nonblocking => eligible"],
        "--profile": ["| --profile costs.toml => eligible", "| --profile builtin => eligible"],
        "--network": ["| --network tcp => eligible"],
        "--network-latency": ["| --network-latency 1ms => eligible"],
        "--shared-heap": ["| --shared-heap => eligible"],
        "--ranks-per-cpu": ["| --ranks-per-cpu 1.5 => eligible"],
        "--format": ["| --format json => ^\\["],
    }},
    "ucg_plan show": {"base": ONE_CALL, "options": {
        **QUESTION,
        "--profile": ["--collective bcast --hosts 2 --ranks-per-host 4 | --profile costs.toml"],
        "--staging": ["--collective reduce --ranks 8 --bytes 4k | --staging 0"],
        # Only prices change, and these choices stay the same.
        "--nonblocking": ["--bytes 256k | --nonblocking => ^schedule"],
        "--no-kernel-copies": ["--nonblocking | --no-kernel-copies => ^schedule"],
        "--rank": ["| --rank 1"],
        "--algorithm": ["| --algorithm ring"],
        "--format": ["| --format json => ^\\{", "| --format dot => ^digraph"],
        "--lowered": ["| --lowered"],
    }},
    "ucg_plan verify": {"base": "--collective allreduce --ranks 4 --bytes 8 --hosts 1", "options": {
        "--collective": ["| --collective bcast,reduce", "| --collective all => neighbor_alltoallv"],
        "--algorithm": ["| --algorithm ring", "| --algorithm recursive_multiplying:a2,a2"],
        "--ranks": ["| --ranks 2..4,6"],
        "--hosts": ["| --hosts 1..2"],
        "--sockets": ["--ranks 8 | --sockets 1..3"],
        "--placement": ["| --placement placement.txt"],
        "--bytes": ["| --bytes 0,8,4k"],
        "--roots": ["--collective bcast | --roots all", "--collective bcast | --roots first"],
        "--element-bytes": ["--bytes 4k | --element-bytes 4k"],
        "--in-place": ["| --in-place yes", "| --in-place no", "| --in-place both => proved"],
        "--commutative": ["| --commutative yes", "| --commutative no",
                          "| --commutative both => proved"],
        **PROFILE,
        "--profile": ["| --profile costs.toml => proved"],
        "--network": ["| --network tcp => proved"],
        "--network-latency": ["| --network-latency 1ms => proved"],
        "--no-kernel-copies": ["--bytes 4k | --no-kernel-copies"],
        "--shared-heap": ["| --shared-heap => proved"],
        "--ranks-per-cpu": ["| --ranks-per-cpu 4 => proved"],
        "--topology": ["--ranks 4 --hosts 4 | --topology topology.conf => proved"],
        "--file": ["| --file schedules.txt => proved"],
        "--root": ["| --file schedules.txt --root 0 => proved"],
        "--blocks": ["| --file gatherv.txt --blocks 8,16 => proved"],
    }},
    "ucg_plan explain": {"base": ONE_CALL, "options": {
        **QUESTION,
        "--algorithm": ["| --algorithm ring",
                        "| --algorithm '0-4k:recursive_doubling;4k-inf:ring'"],
        "--format": ["| --format json => ^\\{"],
    }},
    "ucg_plan search": {"base": ONE_CALL, "options": {
        **{name: trials for name, trials in QUESTION.items() if name != "--topology"}, **PRICES,
        "--collective": ["| --collective allreduce => a4"],
        "--blocks": ["elsewhere: ucg_plan show; the only collective here has none"],
        "--root": ["elsewhere: ucg_plan show; the only collective here has none"],
        "--sockets": ["| --sockets 2"],
        "--unbound": ["| --unbound => schedules"],
        # Only messages are priced.
        "--nonblocking": ["| --nonblocking => a4"],
        "--staging": ["| --staging 0 => a4"],
        "--flag-slots": ["| --flag-slots 0 => a4"],
        "--no-kernel-copies": ["| --no-kernel-copies => a4"],
        "--top": ["--ranks 12 | --top 1"],
        "--limit": ["--ranks 12 | --limit 5"],
        "--simulations": ["--ranks 12 | --simulations 2"],
        "--max-base": ["--ranks 12 | --max-base 3"],
        "--every-order": ["--ranks 12 | --every-order"],
        "--format": ["| --format json => ^\\{"],
    }},
    "ucg_plan guidelines": {"base": "--bytes 8,64", "status": {0, 1}, "options": {
        **PROFILE,
        "--bytes": ["| --bytes 8"],
        "--tolerance": ["| --tolerance 500 => ^400 of 400 guidelines hold"],
        "--profile": ["| --profile costs.toml"],
        "--network": ["--flag-slots 0 --tolerance 0 | --network tcp",
                      "--flag-slots 0 --tolerance 0 | --network one_kernel"],
        "--network-latency": ["--flag-slots 0 --tolerance 0 | --network-latency 1ms"],
        "--staging": ["--bytes 64k | --staging 0"],
        "--no-kernel-copies": ["| --no-kernel-copies => guidelines hold"],
        "--format": ["| --format json => ^\\{"],
    }},
    "ucg_sim run": {"base": ONE_CALL, "options": {
        **QUESTION, **PRICES,
        "--staging": ["--collective reduce --ranks 8 --bytes 4k | --staging 0"],
        # The choice stays the same.
        "--no-kernel-copies": ["--nonblocking | --no-kernel-copies => completion"],
        "--algorithm": ["| --algorithm ring"],
        "--pricing": [f"{HOSTS} | --pricing simgrid --platform platform.xml => SimGrid",
                      "| --pricing own => completion"],
        "--platform": [f"{HOSTS} | --pricing simgrid --platform platform.xml => SimGrid"],
        "--format": ["| --format json => ^\\{", "| --format timeline", "| --format svg => ^</svg>",
                     "| --format dot => ^digraph", "| --format tasks => ."],
        "--details": ["--format json | --details"],
        "--noise": [f"{HOSTS} | --noise {noise}" for noise in (
            "uniform:1us,2us", "exponential:1us", "normal:1us,100ns", "pareto:1us,2")]
        + ["| --noise none => completion"],
        "--compute-noise": ["| --compute-noise exponential:1us"],
        "--skew": ["| --skew uniform:1us,2us"],
        "--arrivals": ["| --arrivals 0us,1us,2us,3us"],
        "--late": ["| --late 3=5us,1=2us"],
        "--in-a-row": ["| --in-a-row 3 => 3 calls"],
        "--seed": ["--skew exponential:1us | --seed 7"],
        "--repetitions": ["--skew exponential:1us | --repetitions 3"],
    }},
    "ucg_sim agreement": {"base": "--bytes 8 --placement '1 host of 2 r' --worst 2", "options": {
        **PROFILE,
        "--bytes": ["| --bytes 8,64"],
        "--worst": ["| --worst 1"],
        "--placement": ["| --placement '1 host of 8'"],
        "--profile": ["| --profile costs.toml => cells"],
        "--network": ["| --network tcp => cells"],
        "--network-latency": ["| --network-latency 1ms => cells"],
        "--staging": ["--bytes 64k | --staging 0"],
        "--flag-slots": ["| --flag-slots 0"],
        "--no-kernel-copies": ["--bytes 256k | --no-kernel-copies => cells"],
        "--format": ["| --format json => ^\\{"],
    }},
    "ucg_topo show": {"options": {
        **MACHINE,
        "--format": ["| --format json => ^\\{", "| --format dot => ^digraph"],
    }},
    "ucg_topo convert": {"options": {
        **MACHINE,
        "--format": ["| --format json => ^\\{", "| --format dot => ^digraph"],
        "--output": ["| --output this.machine => in this.machine ^machine cores"],
    }},
    "ucg_topo placement": {"base": "--hosts 2 --ranks-per-host 2", "options": {
        "--synthetic": [f"| --synthetic {SYNTHETIC}"],
        "--xml": [f"| --xml {XML}"],
        "--machine-file": ["| --machine-file node.machine"],
        "--file": ["| --file placement.txt"],
        "--hosts": ["| --hosts 3"],
        "--ranks-per-host": ["| --ranks-per-host 3"],
        "--map": [f"--synthetic {SYNTHETIC} --format outline | --map package"],
        "--this-machine": ["| --this-machine"],
        "--unbound": ["| --unbound"],
        "--format": ["| --format outline", "| --format json => ^\\{", "| --format dot => ^digraph"],
    }},
    "ucg_topo cluster": {"base": "topology.conf", "options": {
        "--format": ["| --format json => ^\\{", "| --format dot => ^graph",
                     "| --format svg => ^</svg>", "--rate 1gbit | --format simgrid => ^<platform",
                     "| --format slurm => ^SwitchName"],
        "--machines": ["| --machines 'n[0,2-3]'"],
        "--rate": ["| --rate 10gbit"],
        "--link-speed-unit": [f"bare.conf | --link-speed-unit {unit}bit"
                              for unit in "kmg"],
        "--latency": ["--rate 1gbit --format simgrid | --latency 5"],
        "--output": ["| --output cluster.txt => in cluster.txt ^Cluster"],
    }},
    "ucg_tune memory": {"base": "--quick", "options": {
        **TUNE,
        "--quick": ["| --quick => ns"],
    }},
    "ucg_tune network": {"base": "--processes 2 --time 0.1", "options": {
        **TUNE,
        "--bootstrap": ["elsewhere: ucg_tune_test.sh, for the processes of a launcher"],
        "--processes": ["| --processes 3 => ns"],
        "--messages": ["| --messages 2 => ns", "| -k 3 => ns"],
        "--bytes": ["| --bytes 8,1k => ns"],
    }},
    "ucg_tune import-ucx-perftest": {"base": "ranks.csv", "options": {
        "--level": ["| --level cache => levels.cache"],
        "--output": ["| --output imported.toml => in imported.toml levels.network",
                     "| -o - => levels.network"],
        "--system": ["| --system => levels.network"],
        "--format": ["| --format toml => ^version = 1"],
    }},
    "ucg_aapc": {"base": "--topology topology.conf", "options": {
        "--topology": ["| --topology bare.conf"],
        "--format": ["| --format json => ^\\{", "| --format dot => ^graph", "| --format schedule"],
        "--output": ["| --output phases.txt => in phases.txt ^phases"],
    }},
    "vcluster_links": {"options": {
        # The option creates devices, which requires privileges.
        "--link": ["elsewhere: suite cluster"], "--seed": ["elsewhere: suite cluster"],
        "--socket": ["elsewhere: suite cluster"],
    }},
    "ucg_perftest": {"base": "--np 2 -t allreduce -n 20 -w 2", "options": {
        "--thousands": ["-n 2000 | --thousands => 2,000", "-n 2000 | -N => 2,000"],
        "--final": [f"{TAG} | --final => ^ +tag_lat +20 "],
        "--csv": ["| --csv => ^allreduce,8,20,"],
        "--extra": ["| --extra => algorithm \\w+"],
        "--json": ["| --json out.json => in out.json ^\\{", "| --json - => ^\\{"],
        "--np": ["| --np 3 => Ranks: +3"],
        "--launcher": ["| --launcher local => Ranks: +2", "| --launcher auto => Ranks: +2",
                       "elsewhere: socket, pmix in ucg_perftest_test.py"],
        "--port": ["elsewhere: ucg_perftest_test.py"],
        "--ipv6": ["elsewhere: ucg_perftest_test.py"],
        "--cpus": ["| --cpus 0 => Ranks: +2"],
        "--test": ["| --test barrier => Test: +barrier"],
        "--size": ["| --size 64 => ^ +64 ", f"{AM} -D shortiov | -s 8,8 => Message size: 16"],
        "--sizes": ["| --sizes 8:32 => ^ +32 ", "| --sizes 8,1k => ^ +1024 "],
        "--iterations": ["| --iterations 30 => ^ +8 +30 "],
        "--warmup": ["| --warmup 0 => ^ +8 +20 "],
        "--percentile": ["| --percentile 90 => 90.0%ile"],
        "--memory": ["| --memory host => ^ +8 "],
        "--check": ["| --check => ^ +8 "],
        "--batch": ["| --batch short.batch => ^.*second"],
        "--outstanding": [f"{BW} | --outstanding 8 => ^Final: +20 "],
        "--stride": [f"{TAG} -D iov -s 8,8 | --stride 16 => ^Final: +20 "],
        "--loopback": [f"{AM} --np 1 | --loopback => ^Final: +20 "],
        "--idle-responder": ["-t put_lat -x posix -d memory | --idle-responder => ^Final: "],
        "--nonblocking-registration": [f"{TAG} | --nonblocking-registration => ^Final: "],
        "--layout": [f"{AM} | --layout bcopy => layout: +bcopy", f"{AM} | --layout short => short$|"
                     "short ", f"{TAG} | --layout iov => ^Final: ", f"{TAG} | --layout contig => "
                     "^Final: ", f"{AM} -D shortiov -s 8,8 => ^Final: "],
        "--header": [f"{AM} -s 16 -D bcopy | --header 8 => ^Final: "],
        "--device": ["-t am_lat -x posix | --device memory => ^Final: "],
        "--transport": ["-t am_lat -d memory | --transport posix => ^Final: "],
        "--window": [f"-t am_bw -x posix -d memory | --window 16 => ^Final: "],
        "--async": [f"{AM} | --async thread => ^Final: ",
                    f"{AM} | --async thread_spinlock => ^Final: "],
        "--threads": [f"{TAG} | --threads 1 => ^Final: "],
        "--thread-mode": [f"{TAG} | --thread-mode single => ^Final: "],
        "--wildcard": [f"{TAG} | --wildcard => ^Final: "],
        "--unexpected": [f"{TAG} | --unexpected => ^Final: "],
        "--receive-mode": ["-t stream_lat | --receive-mode recv => ^Final: ",
                           "-t stream_lat | --receive-mode recv_data => ^Final: "],
        "--error-handling": [f"{TAG} | --error-handling => ^Final: "],
        "--wait": [f"{TAG} | --wait poll => ^Final: ", f"{TAG} | --wait sleep => ^Final: "],
        "--memory-handle": [f"{TAG} | --memory-handle => ^Final: "],
        "--collective-algorithm": ["-I -s 4k | --collective-algorithm ring => algorithm ring"],
        "--buffers": ["| --buffers heap => Buffers: +heap"],
        "--op": ["--datatype int32 | --op max => int32, max"],
        "--datatype": ["| --datatype float32 => float32, sum"],
        "--in-place": ["-t allgather | --in-place => ^ +8 +20 "],
        "--root": ["-t bcast | --root 1 => ^ +8 +20 "],
        "--mode": ["| --mode b2b => b2b"],
        "--time": ["-t barrier -n 0 | --time 0.001 => ^ +0 +\\d+ "],
    }},
    "ucg_perftest breakdown": {"base": "-n 50 --rounds 2", "options": {
        "-x": ["| -x sysv => transport +sysv"],
        "-d": ["| -d memory => ns"],
        "-n": ["| -n 60 => of 60 samples"],
        "--rounds": ["| --rounds 3 => rounds +3"],
        "-c": ["| -c 0,1 => cpus +0 and 1"],
        "--ucp": ["| --ucp => UCP"],
        "--mpi": ["--ucp | --mpi mpi.json => MPI"],
        "--collective": ["| --collective barrier => barrier"],
        "--check-what-if": ["--collective barrier | --check-what-if => what"],
        "--profile-file": ["--ucp | --profile-file ucx.prof => ns"],
        "--json": ["| --json stages.json => in stages.json ^\\{", "| --json - => ^\\{"],
        "--svg": ["| --svg stages.svg => in stages.svg </svg>"],
    }},
}


def write_files():
    """Writes the input files into the working directory."""
    for name, text in FILES.items():
        with open(name, "w", encoding="utf-8") as file:
            file.write(text)


def has_simgrid(tool):
    done = subprocess.run([tool, "run", *ONE_CALL.split(), "--pricing", "simgrid", "--platform",
                           "platform.xml"], capture_output=True, text=True, timeout=60, check=False)
    return "this build has no SimGrid" not in done.stderr

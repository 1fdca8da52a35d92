// A renderer that does what it must not, for the tests of its sandboxes (hostilebinary.py builds it).
//
// `hostile DEED [ARGUMENT…]` does one thing and says what came of it: "done …" or "refused …". As kubectl or helm would
// be, it is asked for its version, and then to render: it finds its deed in the file `deed` of the directory it is in.
package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

func main() {
	words := os.Args[1:]
	switch words[0] {
	case "version":
		fmt.Println("v0.0.0-hostile")
		return
	case "kustomize", "template":
		said, err := os.ReadFile("deed")
		check(err)
		words = strings.Fields(string(said))
	}
	do(words[0], append(words[1:], "", ""))
}

func do(deed string, told []string) {
	number, _ := strconv.Atoi(told[0])
	switch deed {
	case "read":
		data, err := os.ReadFile(told[0])
		check(err)
		done(string(data))
	case "list":
		entries, err := os.ReadDir(told[0])
		check(err)
		for _, entry := range entries {
			fmt.Println(entry.Name())
		}
		done("")
	case "write":
		check(os.WriteFile(told[0], []byte("x"), 0o600))
		done("")
	case "remove":
		check(os.Remove(told[0]))
		done("")
	case "change":
		check(os.Chmod(told[0], 0o777))
		done("")
	case "connect":
		connection, err := net.DialTimeout(told[0], told[1], 2*time.Second)
		check(err)
		_, err = connection.Write([]byte("x"))
		check(err)
		done("")
	case "listen":
		_, err := net.Listen(told[0], told[1])
		check(err)
		done("")
	case "exec":
		said, err := exec.Command(told[0], "version").CombinedOutput()
		check(err)
		done(string(said))
	case "become":
		check(syscall.Exec(told[0], []string{told[0], "version"}, nil))
	case "fork":
		_, _, problem := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
		number_of(problem)
	case "signal":
		check(syscall.Kill(number, syscall.SIGKILL))
		done("")
	case "call": // the number of a system call that takes nothing it could mind
		_, _, problem := syscall.RawSyscall6(uintptr(number), 0, 0, 0, 0, 0, 0)
		number_of(problem)
	case "raise":
		limit := syscall.Rlimit{Cur: 1 << 40, Max: 1 << 40}
		_, _, problem := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, 0, 2, uintptr(unsafe.Pointer(&limit)), 0, 0, 0)
		number_of(problem)
	case "environment":
		done(strings.Join(os.Environ(), "\n"))
	case "descriptors":
		for descriptor := 3; descriptor < 256; descriptor++ {
			var status syscall.Stat_t
			if syscall.Fstat(descriptor, &status) == nil && status.Mode&syscall.S_IFMT != 0 {
				fmt.Println(descriptor)
			}
		}
		done("")
	case "memory":
		kept := [][]byte{}
		for at := 0; at < number; at++ {
			part := make([]byte, 1<<20)
			for page := 0; page < len(part); page += 4096 {
				part[page] = 1
			}
			kept = append(kept, part)
		}
		done(fmt.Sprint(len(kept)))
	case "print":
		part := strings.Repeat("x", 1<<20-1) + "\n"
		for at := 0; at < number; at++ {
			fmt.Print(part)
		}
	case "complain":
		part := strings.Repeat("y", 1<<20-1) + "\n"
		for at := 0; at < number; at++ {
			fmt.Fprint(os.Stderr, part)
		}
		os.Exit(1)
	case "say":
		fmt.Fprintln(os.Stderr, strings.Join(told, " "))
		os.Exit(1)
	case "spin":
		for {
		}
	case "wait":
		time.Sleep(time.Hour)
	case "linger": // ends what it prints to, and goes on
		os.Stdout.Close()
		os.Stderr.Close()
		time.Sleep(time.Hour)
	case "threads":
		for at := 0; at < number; at++ {
			go func() {
				runtime.LockOSThread()
				syscall.Nanosleep(&syscall.Timespec{Sec: 5}, nil)
			}()
		}
		time.Sleep(time.Second)
		done("")
	case "owner": // has the kernel signal another process once something can be read
		var ends [2]int
		check(syscall.Pipe(ends[:]))
		for command, value := range map[uintptr]uintptr{8: uintptr(number), 10: 9} { // F_SETOWN, F_SETSIG
			if _, _, problem := syscall.Syscall(syscall.SYS_FCNTL, uintptr(ends[0]), command, value); problem != 0 {
				number_of(problem)
			}
		}
		done("")
	case "babble":
		for {
			fmt.Fprintln(os.Stderr, "y")
		}
	case "lots":
		fmt.Println(time.Now().UnixNano())
	case "same":
		fmt.Println(strings.Join(told, " "))
	default:
		panic("no such deed: " + deed)
	}
}

func check(err error) {
	if err != nil {
		fmt.Println("refused", err)
		os.Exit(3)
	}
}

func number_of(problem syscall.Errno) {
	if problem != 0 {
		fmt.Println("refused", problem.Error())
		os.Exit(3)
	}
	done("")
}

func done(what string) {
	fmt.Println("done", what)
	os.Exit(0)
}

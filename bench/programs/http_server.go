// SPDX-License-Identifier: MIT

// http_server.go - a server of net/http and its clients in one process: goroutines on few kernel threads, epoll, futexes.
//
// Read next: bench/validation_set.py, which records it.
package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
)

const nClients, nRequests, nRounds = 6, 300, 1200

func answer(w http.ResponseWriter, r *http.Request) {
	sum := sha256.Sum256([]byte(r.URL.Path))
	for i := 0; i < nRounds; i++ {
		sum = sha256.Sum256(sum[:])
	}
	fmt.Fprintf(w, "%x", sum)
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go http.Serve(listener, http.HandlerFunc(answer))
	var clients sync.WaitGroup
	for c := 0; c < nClients; c++ {
		clients.Add(1)
		go func(c int) {
			defer clients.Done()
			for i := 0; i < nRequests; i++ {
				response, err := http.Get(fmt.Sprintf("http://%s/%d/%d", listener.Addr(), c, i))
				if err != nil {
					os.Exit(1)
				}
				io.Copy(io.Discard, response.Body)
				response.Body.Close()
			}
		}(c)
	}
	clients.Wait()
}

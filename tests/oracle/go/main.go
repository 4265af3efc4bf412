// Command oracle draws random cases for `mortise admit` and answers them with kubelet's own code.
//
//	oracle --cases N --seed S --from I [--big] --out-cases FILE --out-answers FILE
//
// Case I depends on the seed, I and --big only. Usual cases have at most 20,000 combinations of hints, which kubelet
// walks through one by one; big ones have more, up to 2,000,000.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"

	"github.com/go-logr/logr"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
)

const (
	usualLimit = 20_000
	bigLimit   = 2_000_000
	redraws    = 2_000
)

type line struct {
	question, answer []byte
	combinations     float64
	numas            int
}

// solve draws cases until one has a fitting number of combinations, and answers it.
func solve(seed uint64, id int, big bool, dir string) line {
	stream, limit, least := uint64(id)<<1, float64(usualLimit), 0.0
	if big {
		stream, limit, least = stream+1, bigLimit, usualLimit+1
	}
	d := dice{rand.New(rand.NewPCG(seed, stream))}
	numas := d.between(1, 4)
	if big || d.chance(35) {
		numas = d.between(5, 8)
	}
	for range redraws {
		c := drawCase(d, id, numas)
		var answer Answer
		count := combinations(c)
		if c.Node != nil {
			var err error
			if answer, count, err = ask(c, dir, limit); err != nil {
				continue
			}
		} else if least <= count && count <= limit {
			answer = merge(c)
		}
		if least <= count && count <= limit {
			return line{must(json.Marshal(c)), must(json.Marshal(answer)), count, numas}
		}
	}
	panic(fmt.Sprintf("case %d: found none with a fitting number of combinations", id))
}

func write(out *bufio.Writer, text []byte) {
	must(out.Write(text))
	check(out.WriteByte('\n'))
}

func main() {
	cases := flag.Int("cases", 1000, "how many")
	seed := flag.Uint64("seed", 1, "seed of the draw")
	from := flag.Int("from", 0, "first case")
	big := flag.Bool("big", false, "cases with more combinations than usual")
	casesFile := flag.String("out-cases", "", "file for the cases")
	answersFile := flag.String("out-answers", "", "file for kubelet's answers")
	flag.Parse()
	klog.SetLogger(logr.Discard())
	log.SetOutput(io.Discard)
	check(utilfeature.DefaultMutableFeatureGate.Set("CPUManagerPolicyAlphaOptions=true"))

	base := must(os.MkdirTemp("", "kubelet-oracle-"))
	defer os.RemoveAll(base)
	questions := must(os.Create(*casesFile))
	answers := must(os.Create(*answersFile))
	questionLines, answerLines := bufio.NewWriter(questions), bufio.NewWriter(answers)

	const chunk = 512 // results in memory at a time
	const workers = 2
	biggest, wide := 0.0, 0
	for start := *from; start < *from+*cases; start += chunk {
		end := min(start+chunk, *from+*cases)
		lines := make([]line, end-start)
		var group sync.WaitGroup
		for worker := range workers {
			group.Add(1)
			go func() {
				defer group.Done()
				dir := filepath.Join(base, fmt.Sprint(worker)) + "/"
				for id := start + worker; id < end; id += workers {
					lines[id-start] = solve(*seed, id, *big, dir)
				}
			}()
		}
		group.Wait()
		for _, result := range lines {
			write(questionLines, result.question)
			write(answerLines, result.answer)
			biggest = max(biggest, result.combinations)
			if result.numas >= 5 {
				wide++
			}
		}
	}
	check(questionLines.Flush())
	check(answerLines.Flush())
	check(questions.Close())
	check(answers.Close())
	fmt.Printf("%d %d %.0f\n", *cases, wide, biggest)
}

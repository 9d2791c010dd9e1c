package schema_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"testing"

	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/test/integration/admission/schema"
)

func admission(t testing.TB) *schema.Admission {
	t.Helper()
	_, file, _, _ := runtime.Caller(0)
	crd, err := schema.ReadCRD(filepath.Join(filepath.Dir(file), "../../../../config/crd/bases/aiops.example.com_aitasks.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	out, err := schema.New(crd)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// decoder decodes as the typed clients do.
func decoder(t testing.TB) k8sruntime.Decoder {
	t.Helper()
	scheme := k8sruntime.NewScheme()
	if err := aiopsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return serializer.NewCodecFactory(scheme).UniversalDeserializer()
}

// mustDecode fails the test when a list with this stored body cannot be decoded: one such task would hide every task from every
// client.
func mustDecode(t *testing.T, decode k8sruntime.Decoder, stored []byte) {
	t.Helper()
	list := fmt.Appendf(nil, `{"apiVersion":"aiops.example.com/v1","kind":"AITaskList","items":[%s]}`, stored)
	if err := k8sruntime.DecodeInto(decode, list, &aiopsv1.AITaskList{}); err != nil {
		t.Errorf("admitted and not decoded: %v\n%s", err, stored)
	}
}

// FuzzDecode: what admission lets in decodes. It is fed with two things in turn: a body as it is, and choices that make a body of
// nearly the right shape, since few changed bytes of JSON are an AITask.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"apiVersion":"aiops.example.com/v1","kind":"AITask","metadata":{"name":"web"},"spec":{"targetDeployment":"web","threshold":1e0,"action":"Restart"}}`), []byte{})
	f.Add([]byte(`{"apiVersion":"aiops.example.com/v1","kind":"AITask","metadata":{"name":"web"},"spec":{"targetDeployment":"web"},"status":{"lastExecutionTime":"2026-01-01t00:00:00Z"}}`), []byte{})
	for seed := range uint64(64) {
		random := rand.New(rand.NewPCG(seed, seed))
		choices := make([]byte, 0, 1024)
		for len(choices) < cap(choices) {
			choices = binary.LittleEndian.AppendUint64(choices, random.Uint64())
		}
		f.Add([]byte{}, choices)
	}
	judge, decode := admission(f), decoder(f)
	f.Fuzz(func(t *testing.T, body, choices []byte) {
		generated, err := judge.Generate(schema.FromBytes(choices), "fuzz")
		if err != nil {
			t.Fatal(err)
		}
		for _, candidate := range [][]byte{body, generated} {
			if stored, err := judge.Admit(context.Background(), candidate); err == nil {
				mustDecode(t, decode, stored)
			}
		}
	})
}

// The generator is worth something only if a good part of what it makes is admitted, and a good part refused.
func TestGenerate(t *testing.T) {
	judge, decode := admission(t), decoder(t)
	const bodies = 2000
	admitted := 0
	for seed := range uint64(bodies) {
		random := rand.New(rand.NewPCG(seed, 0))
		body, err := judge.Generate(random.IntN, "fuzz")
		if err != nil {
			t.Fatal(err)
		}
		stored, err := judge.Admit(context.Background(), body)
		if err != nil {
			continue
		}
		admitted++
		mustDecode(t, decode, stored)
	}
	if admitted < bodies/10 || admitted > bodies*9/10 {
		t.Errorf("%d of %d bodies were admitted, want between a tenth and nine tenths", admitted, bodies)
	}
	t.Logf("%d of %d bodies admitted", admitted, bodies)
}

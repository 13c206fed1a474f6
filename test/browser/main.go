package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"slices"
)

// example is the machine of the README's picture.
const example = "dell-xe9680-h100"

func main() {
	out := flag.String("o", "", "the file to write the screenshot to")
	flag.Parse()
	if err := run(context.Background(), *out); err != nil {
		fmt.Fprintln(os.Stderr, "screenshot:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out string) error {
	if out == "" {
		return fmt.Errorf("which file? (-o FILE)")
	}
	dir, err := os.MkdirTemp("", "screenshot")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	m, err := newMachines(ctx, dir)
	if err != nil {
		return err
	}
	file, err := m.topo(ctx, description(example), "ready", "html")
	if err != nil {
		return err
	}
	ctx, stop, err := start(ctx)
	if err != nil {
		return err
	}
	defer stop()
	shot, err := screenshot(ctx, file)
	if err != nil {
		return err
	}
	small, err := paletted(shot)
	if err != nil {
		return err
	}
	return os.WriteFile(out, small, 0o644)
}

// paletted writes a PNG with the 256 colors it has most of, and for each other
// the nearest of those: text and flat surfaces look the same.
func paletted(data []byte) ([]byte, error) {
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	bounds := img.Bounds()
	counts := map[color.RGBA]int{}
	at := func(x, y int) color.RGBA { return color.RGBAModel.Convert(img.At(x, y)).(color.RGBA) }
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			counts[at(x, y)]++
		}
	}
	colors := make([]color.RGBA, 0, len(counts))
	for c := range counts {
		colors = append(colors, c)
	}
	slices.SortFunc(colors, func(a, b color.RGBA) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return int(a.R)<<16 + int(a.G)<<8 + int(a.B) - int(b.R)<<16 - int(b.G)<<8 - int(b.B)
	})
	palette := make(color.Palette, 0, 256)
	for _, c := range colors[:min(256, len(colors))] {
		palette = append(palette, c)
	}
	nearest := map[color.RGBA]uint8{}
	small := image.NewPaletted(bounds, palette)
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			c := at(x, y)
			index, ok := nearest[c]
			if !ok {
				index = uint8(palette.Index(c))
				nearest[c] = index
			}
			small.SetColorIndex(x, y, index)
		}
	}
	var out bytes.Buffer
	err = (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, small)
	return out.Bytes(), err
}

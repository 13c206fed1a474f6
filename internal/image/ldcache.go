package image

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// Forms of /etc/ld.so.cache (glibc sysdeps/generic/dl-cache.h): cacheMagic begins the form of
// glibc 2.2 and newer, which may stand behind the older one.
const (
	cacheMagic    = "glibc-ld.so.cache1.1"
	oldCacheMagic = "ld.so-1.7.0"

	cacheHead, cacheEntry       = 48, 24
	oldCacheHead, oldCacheEntry = 16, 12
)

var errCache = errors.New("not a cache of the loader")

// parseCache returns the paths of each library in the loader's cache, in its order. Those for
// processors of some kind only are left out.
func parseCache(data []byte) (map[string][]string, error) {
	if bytes.HasPrefix(data, []byte(oldCacheMagic)) {
		if len(data) < oldCacheHead {
			return nil, errCache
		}
		end := oldCacheHead + uint64(binary.NativeEndian.Uint32(data[12:]))*oldCacheEntry
		end = (end + 7) &^ 7
		if end > uint64(len(data)) {
			return nil, errCache
		}
		data = data[end:]
	}
	if len(data) < cacheHead || !bytes.HasPrefix(data, []byte(cacheMagic)) {
		return nil, errCache
	}
	var order binary.ByteOrder = binary.LittleEndian
	if data[28]&3 == 3 { // cache_file_new.flags: the byte order
		order = binary.BigEndian
	}
	entries := data[cacheHead:]
	count := uint64(order.Uint32(data[len(cacheMagic):]))
	if count*cacheEntry > uint64(len(entries)) {
		return nil, errCache
	}
	paths := map[string][]string{}
	for n := range count {
		entry := entries[n*cacheEntry:]
		name, path := text(data, order.Uint32(entry[4:])), text(data, order.Uint32(entry[8:]))
		if hardware := order.Uint64(entry[16:]); hardware == 0 && name != "" && path != "" {
			paths[name] = append(paths[name], path)
		}
	}
	return paths, nil
}

// text is the one that begins at an offset and ends with a zero; "" where there is none.
func text(data []byte, offset uint32) string {
	if uint64(offset) >= uint64(len(data)) {
		return ""
	}
	const longest = 4096
	rest := data[offset:]
	end := bytes.IndexByte(rest[:min(len(rest), longest)], 0)
	if end < 0 {
		return ""
	}
	return string(rest[:end])
}

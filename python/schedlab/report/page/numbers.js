// SPDX-License-Identifier: MIT
// Numbers in LEB128. Times pass 2^32, so they are added up and not shifted.
class NumberReader {
  constructor(bytes, at = 0) {
    this.bytes = bytes;
    this.at = at;
  }

  next() {
    let value = 0, scale = 1, byte;
    do {
      byte = this.bytes[this.at++];
      value += (byte & 127) * scale;
      scale *= 128;
    } while (byte > 127);
    return value;
  }

  text() {
    const length = this.next();
    return new TextDecoder().decode(this.bytes.subarray(this.at, this.at += length));
  }

  many(array) {
    for (let i = 0; i < array.length; i++) array[i] = this.next();
    return array;
  }
}

/** A list of numbers from 0 to 4,294,967,295, four octets each. */
export interface GrowingNumbers {
  readonly length: number
  at(index: number): number
  set(index: number, value: number): void
  push(value: number): void
}

const FIRST_CAPACITY = 1024

export function growingNumbers(): GrowingNumbers {
  let numbers = new Uint32Array(FIRST_CAPACITY)
  let length = 0
  return {
    get length() {
      return length
    },
    at: (index) => numbers[index] ?? 0,
    set(index, value) {
      numbers[index] = value
    },
    push(value) {
      if (length === numbers.length) {
        const larger = new Uint32Array(length + Math.ceil(length / 2))
        larger.set(numbers)
        numbers = larger
      }
      numbers[length] = value
      length += 1
    },
  }
}

/** A function that throws this. */
export const throwing = (thrown: unknown) => (): never => {
  throw thrown
}

// Fighters by their keys: twice a player's number, or twice the id of a machine's body and one more. A key is below 2^49:
// exact in a number, too large for bit operators.

/** A tank that the server drives. */
export function isMachine(fighter: number): boolean {
  return fighter % 2 === 1;
}

/** For a fighter whose name is not known. */
export function nameless(fighter: number): string {
  return isMachine(fighter) ? "a machine" : `player ${fighter / 2}`;
}
